"""Batches that are drawn with replacement: how many, how they vary, and that only client and trip decide them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedactors.algorithms.fsl import FSL
from fedactors.data import batches
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.dense_gram import DenseGramEngine
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import TaskSetting
from fedactors.learning.batch_planner import BatchPlanner
from fedactors.learning.training_task import SampleVariants, TrainingTask
from fedactors.models.network import initial
from fedactors.scenario.model import Scenario
from fedactors.simulation.prepare import prepare
from fedactors.workload import workload
from tests.engines.test_engines import MODELS, SIZES, chunk, samples, with_engine

HELD = np.array([40, 41, 42, 43, 44, 45, 46, 47, 48, 49])


def task(model, algorithm=None, **options):
    works = tuple(workload(int(n), 5, epochs=2, steps=None, with_replacement=True) for n in SIZES)
    return TrainingTask(model, algorithm or FSL(), 3, works, **options)


def drawn(work, steps, trip=0, client=4):
    return batches.sequence(1, client, trip, HELD, work, steps)


def test_an_epoch_has_the_steps_of_a_pass_and_all_batches_are_full():
    """23 samples in batches of 5: 5 steps of a pass; two epochs are 10 steps of 5 samples, where passes have 46."""
    replaced = workload(23, 5, epochs=2, steps=None, with_replacement=True)
    assert (replaced.wanted, replaced.samples(10), replaced.held) == (10, 50, 23)
    passes = workload(23, 5, epochs=2, steps=None)
    assert (passes.wanted, passes.samples(10), passes.held) == (10, 46, 23)
    assert batches.bounds(replaced, 6)[-1] == (25, 30)
    assert replaced.steps_within(29) == 5
    assert workload(3, 5, epochs=1, steps=None, with_replacement=True).batch == 3


@pytest.mark.slow
def test_the_mean_of_a_batch_varies_as_that_of_independent_draws():
    """10 values with the variance 8.25: batches of 5 have 8.25 / 5 = 1.65, where passes have 1.65 (10 - 5) / 9 = .917.

    Two batches of one trip are uncorrelated; in a pass the second one is what the first one left.
    """
    replaced = workload(10, 5, epochs=1, steps=None, with_replacement=True)
    passes = workload(10, 5, epochs=1, steps=None)
    for work, variance, covariance in ((replaced, 8.25 / 5, 0.0), (passes, 8.25 / 9, -8.25 / 9)):
        means = np.array([drawn(work, 2, trip).reshape(2, 5).mean(1) for trip in range(6_000)])
        found = np.cov(means.T)
        assert found[0] == pytest.approx([variance, covariance], abs=0.1)
        assert found[1, 1] == pytest.approx(variance, abs=0.1)


def test_a_longer_trip_begins_with_the_batches_of_a_shorter_one():
    work = workload(10, 3, epochs=None, steps=50, with_replacement=True)
    long = drawn(work, 50)
    assert set(long) == set(HELD)
    for steps in (1, 2, 7, 49):
        assert drawn(work, steps).tolist() == long[: 3 * steps].tolist()
    assert drawn(work, 50, trip=1).tolist() != long.tolist()


@pytest.mark.parametrize("copies", [1, 3])
def test_batches_do_not_depend_on_the_chunk_of_a_client(copies):
    """With several variants of each sample, too."""
    model = MODELS["mlp"]
    data = samples(model)
    variants = SampleVariants(copies, len(data.y)) if copies > 1 else None
    planner = BatchPlanner(task(model), replace(data, variants=variants), torch.device("cpu"))
    steps = (10, 3, 16, 2, 8)
    together = planner.plan(chunk(steps)).order
    for client, (order, done) in enumerate(zip(together, steps, strict=True)):
        (alone,) = planner.plan(chunk((done,), clients=(client,))).order
        assert alone.tolist() == order.tolist()
        assert planner.first_batch(client, 2).tolist() == order[: min(5, SIZES[client])].tolist()


@pytest.mark.parametrize("engine", [VmapEngine, DenseBatchedEngine, DenseGramEngine])
@pytest.mark.parametrize("name", ["mlp", "dropout", "deep"])
def test_engines_agree(name, engine):
    model = MODELS[name]
    sent = [{"x": initial(model, 1)}]
    work = chunk((10, 0, 16, 2, 8), weights=(0.5, 1.0, 0.25, 2.0, 1.0))
    one, many = (with_engine(e, task(model), samples(model)).learn(work, sent) for e in (SequentialEngine, engine))
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-5, atol=1e-6)
    assert one.loss == pytest.approx(many.loss, rel=1e-5)


def test_the_servers_own_steps_are_drawn_alike():
    setting = TaskSetting(clients=4, cohort=4, samples=40, central=23, batch=5, steps=7.0, with_replacement=True)
    assert FSL().central_work(setting) == workload(23, 5, epochs=None, steps=7, with_replacement=True)
    assert FSL().central_work(setting._replace(with_replacement=False)) == workload(23, 5, epochs=None, steps=7)


def scenario(**local):
    data = {
        "name": "replaced",
        "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
        "population": [{"name": "phones", "count": 6, "compute": {"per_sample": "1s"}}],
        "server": {"rounds": 2, "local": {"epochs": 2, "batch": 100, **local}},
    }
    return Scenario.from_data(data, "replaced.yaml")


def test_the_clock_charges_full_batches():
    """1,437 samples for 6 clients: 240 or 239 each, in 3 batches of 100; two epochs are 600 samples, not 480 or 478."""
    made = prepare(scenario(with_replacement=True))
    assert {work.samples(work.wanted) for work in made.workloads} == {600}
    (first, *_) = made.clock()
    assert {order.wanted for order in first.orders} == {6}
    longest = max(order.finished - order.started for order in first.orders)
    assert longest >= 600 * 10**9
    passes = prepare(scenario())
    (first, *_) = passes.clock()
    assert max(order.finished - order.started for order in first.orders) < 500 * 10**9


def test_leaving_out_a_short_batch_has_no_meaning_then():
    with pytest.raises(ScenarioError, match="all batches are full then"):
        scenario(with_replacement=True, drop_last=True)
