"""The models of mixed federated learning: published sizes, PyTorch's own layers, both engines, and rows that travel."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import fedactors
from fedactors import Scenario
from fedactors.algorithms.parallel_training import ParallelTraining
from fedactors.algorithms.two_way import TwoWay
from fedactors.data.partitions.assignment import contiguous
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, TrainingData, TrainingTask
from fedactors.models.mixed_models import CharGru, DualEncoder, SmileFc
from fedactors.models.network import forward, initial, views
from fedactors.models.table_rows import decode, encode, needed
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load
from fedactors.workload import workload

SIZES = np.array([11, 4, 7])


def test_sizes_are_the_published_ones():
    assert SmileFc().build((3, 28, 28), 2).parameters == 150_657
    assert SmileFc().build((3, 84, 84), 2).parameters == 1_354_881
    assert CharGru().build((100,), 66).parameters == 3_938_304 + 1_281 * 66 == 4_022_850
    assert DualEncoder().build((10,), 3952).parameters == 63_232 + 272
    assert CharGru().build((100,), 66).flops == pytest.approx(2.4e9, rel=0.05)


def test_the_character_model_is_that_of_torch():
    model = CharGru(embedding=5, units=7).build((6,), 9)
    flat = torch.from_numpy(initial(model, 1))
    x = torch.randint(0, 9, (4, 6), generator=torch.Generator().manual_seed(2))
    table, dense = nn.Embedding(9, 5), nn.Linear(7, 9)
    recurrent = nn.GRU(5, 7, batch_first=True)
    parameters = [*table.parameters(), *recurrent.parameters(), *dense.parameters()]
    nn.utils.vector_to_parameters(flat, parameters)
    found = forward(model, views(model, flat), x.float())
    torch.testing.assert_close(found, dense(recurrent(table(x))[0]))


def test_the_recommender_is_a_mean_of_rows_a_layer_and_cosines():
    model = DualEncoder(width=3).build((4,), 6)
    table, weight, bias = views(model, torch.from_numpy(initial(model, 1)))
    x = torch.tensor([[2.0, -1, 5, -1], [-1, -1, -1, -1]])
    found = forward(model, [table, weight, bias], x)
    torch.testing.assert_close(found[0], weight @ ((table[2] + table[5]) / 2) + bias)
    torch.testing.assert_close(found[1], bias)


def smiles():
    model, draws = SmileFc(hidden=6).build((1, 3, 3), 2), np.random.default_rng(0)
    return model, draws.random((SIZES.sum(), 1, 3, 3), dtype=np.float32), draws.integers(0, 2, SIZES.sum())


def characters():
    draws = np.random.default_rng(0)
    x = draws.integers(0, 9, (SIZES.sum(), 5))
    return CharGru(embedding=4, units=6).build((5,), 9), x.astype(np.float32), np.roll(x, -1, axis=1)


def movies():
    draws = np.random.default_rng(0)
    x = draws.integers(-1, 12, (SIZES.sum(), 4)).astype(np.float32)
    return DualEncoder(width=3).build((4,), 12), x, draws.integers(0, 12, SIZES.sum())


def task(model, algorithm):
    return TrainingTask(model, algorithm, 3, tuple(workload(int(n), 3, epochs=2, steps=None) for n in SIZES))


@pytest.mark.parametrize("make", [smiles, characters, movies])
def test_sequential_and_cohort_agree(make):
    model, x, y = make()
    data = TrainingData(x, y, contiguous(SIZES))
    trainers = [Trainer(task(model, ParallelTraining()), data, engine=e()) for e in (SequentialEngine, VmapEngine)]
    chunk = Chunk(0, (0, 1, 2), (0, 0, 0), (0, 0, 0), (7, 2, 0), (0.5, 0.3, 0.2), 0.3)
    one, many = (trainer.learn(chunk, [{"x": initial(model, 1)}]) for trainer in trainers)
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-4, atol=1e-6)
    assert one.loss == pytest.approx(many.loss, rel=1e-5)


def test_a_client_needs_the_rows_of_its_movies_alone():
    """What a message carries is enough: with everything else zero, the loss and its gradient are the same."""
    model, x, y = movies()
    data, start = TrainingData(x, y, contiguous(SIZES)), initial(model, 1)
    mine = data.split.of(1)
    mask = needed(model, [x[mine].astype(np.int64), y[mine]])
    (sent,) = decode(encode([start], mask), model, mask)
    trainer = Trainer(task(model, ParallelTraining()), data)
    chunk = Chunk(0, (1,), (0,), (0,), (4,), (1.0,), 0.3)
    whole, part = (trainer.learn(chunk, [{"x": vector}]) for vector in (start, sent))
    assert np.array_equal(whole.sums["delta"], part.sums["delta"])
    assert whole.loss == part.loss
    assert not whole.sums["delta"][~mask].any()


def test_the_server_can_move_the_rows_that_a_client_lacks():
    """1-W and 2-W: with a client's own rows of x and gc alone its own rows move as ever; the others by -eta K gc."""
    model, x, y = movies()
    data, start = TrainingData(x, y, contiguous(SIZES)), initial(model, 1)
    gc = np.linspace(-0.1, 0.1, model.parameters).astype(np.float32)
    mine = data.split.of(1)
    mask = needed(model, [x[mine].astype(np.int64), y[mine]])
    assert not mask.all()
    trainer = Trainer(task(model, TwoWay()), data)
    chunk = Chunk(0, (1,), (0,), (0,), (4,), (1.0,), 0.3)
    whole = trainer.learn(chunk, [{"x": start, "gc": gc}]).sums["delta"]
    own_x, own_gc = decode(encode([start, gc], mask), model, mask)
    part = trainer.learn(chunk, [{"x": own_x, "gc": own_gc}]).sums["delta"]
    assert np.array_equal(whole[mask], part[mask])
    np.testing.assert_allclose(whole[~mask], -0.3 * 4 * gc[~mask], rtol=1e-4, atol=1e-6)


class Cost(NamedTuple):
    """What one way to train the recommender costs a client."""

    traffic: int  # bytes of a round, of the table alone
    step: int  # operations of a local step


def costs(movies, width, seen, batch):
    """Return the costs of Augenstein et al., 2022, tables 3 and 12, appendix C.3, by method."""
    own = batch * width + 3 * batch * width**2 + 3 * batch**2 * width + 2 * batch
    everything = own + movies**2 * width // 2 + movies * width
    rows = {"baseline": 2 * movies, "PT": 2 * seen, "1-W": 3 * seen, "2-W": 3 * seen}
    return {name: Cost(4 * count * width, everything if name == "baseline" else own) for name, count in rows.items()}


def test_costs_are_those_of_the_papers_tables():
    """I-M9: 494, 20, 30, 30 KiB; .025 and 125 MFLOP; 99.98 % and 93.9 % saved."""
    found = costs(3952, 16, 160, 16)
    assert {name: round(cost.traffic / 1024) for name, cost in found.items()} == {
        "baseline": 494, "PT": 20, "1-W": 30, "2-W": 30,
    }  # fmt: skip
    assert found["PT"].step == 24_864
    assert found["baseline"].step - found["PT"].step == 3952**2 * 16 // 2 + 3952 * 16
    assert round(found["baseline"].step / 1e6, 2) == 125.03
    assert round(100 * (1 - found["PT"].step / found["baseline"].step), 2) == 99.98
    assert round(100 * (1 - found["1-W"].traffic / found["baseline"].traffic), 1) == 93.9


MOVIES = {
    "name": "movies",
    "seed": 2,
    "task": {
        "dataset": {"name": "clustered_ratings", "users": 25, "movies": 3952, "ratings_each": 160},
        "model": "dual_encoder",
        "partition": "natural",
    },
    "population": [{"name": "phones", "count": 16, "network": {"down": "10 kB/s", "up": "10 kB/s"}}],
    "server": {
        "rounds": 2,
        "cohort": 8,
        "local": {"steps": 2, "batch": 16},
        "schedule": {"name": "constant", "lr": 1.0},
    },
}


@pytest.mark.parametrize(("name", "vectors"), [("mixed-pt", 1), ("mixed-1w", 2), ("mixed-2w", 2)])
def test_measured_messages_are_as_long_as_the_clock_charges_and_the_formula_says(name, vectors, tmp_path):
    """Each client's messages, encoded, against its orders; their tables against 2 n d and 3 n d floats: within 1 %."""
    algorithm = {"name": name, "central_objective": "spreadout"}
    scenario = Scenario.model_validate({**MOVIES, "server": {**MOVIES["server"], "algorithm": algorithm}})
    prepared = prepare(scenario)
    the_lesson, samples, *_ = load(prepared)
    x, plan = initial(the_lesson.model, 2), next(prepared.clock())
    assert len(plan.orders) == 8
    for order in plan.orders:
        mine = samples.split.of(order.client)
        mask = needed(the_lesson.model, [samples.x[mine].astype(np.int64), samples.y[mine]])
        down, up = encode([x] * vectors, mask), encode([x], mask)
        assert len(down) == pytest.approx(order.down, rel=0.01)
        assert len(up) == pytest.approx(order.up, rel=0.01)
        tables = len(down) + len(up) - 4 * 272 * (vectors + 1)  # what the paper leaves out
        seen = int(prepared.info.client_rows[order.client])
        key = {"mixed-pt": "PT", "mixed-1w": "1-W", "mixed-2w": "2-W"}[name]
        assert tables == pytest.approx(costs(3952, 16, seen, 16)[key].traffic, rel=0.01)
    result = fedactors.run(scenario, tmp_path / "run", fleet="local")
    assert result.summary["bytes"]["down"] < 8 * 2 * vectors * prepared.model_bytes / 10
    assert {"recall10", "spreadout"} <= result.metrics[-1].keys()


def test_the_baseline_sends_the_whole_table():
    algorithm = {"name": "mixed-et", "central_objective": "spreadout"}
    scenario = Scenario.model_validate({**MOVIES, "server": {**MOVIES["server"], "algorithm": algorithm}})
    prepared = prepare(scenario)
    order = next(prepared.clock()).orders[0]
    assert order.down == order.up == 4 * (63_232 + 272)
    assert (order.down + order.up - 2 * 4 * 272) / 1024 == 494


def test_the_baseline_pays_for_the_regulariser_at_every_step():
    """COMP. of table 3 in virtual time: V^2 d / 2 + V d multiply-adds beside those of a step of 16 samples."""
    made = {}
    for name in ("mixed-et", "mixed-pt", "mixed-1w", "mixed-2w"):
        algorithm = {"name": name, "central_objective": "spreadout"}
        phones = [{**MOVIES["population"][0], "compute": {"flops": "1 GFLOP/s"}}]
        server = {**MOVIES["server"], "algorithm": algorithm}
        prepared = prepare(Scenario.model_validate({**MOVIES, "population": phones, "server": server}))
        made[name] = 16 * prepared.population.per_sample[0] / 1e6  # MFLOP of a step: one operation takes 1 ns
    step = 16 * 3 * 2 * 16**2 / 1e6
    assert made["mixed-pt"] == made["mixed-1w"] == made["mixed-2w"] == pytest.approx(step, rel=0.01)
    assert made["mixed-et"] == pytest.approx(step + 2 * (3952**2 * 16 / 2 + 3952 * 16) / 1e6, rel=0.01)
    assert 1 - made["mixed-pt"] / made["mixed-et"] > 0.9998
