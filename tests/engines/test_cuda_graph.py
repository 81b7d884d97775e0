"""Recorded steps against the engines that launch each; and what a recording must not know.

A CUDA graph needs a GPU. What it demands of a step does not: the step is traced once into a list of operations, with
every value of the host baked in, and this list is replayed in its place.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from fedactors.algorithms.example_transfer import ExampleTransfer
from fedactors.algorithms.fed_ams import FedAMS
from fedactors.algorithms.fedavg import FedAvg
from fedactors.data import batches
from fedactors.engines.client_batch import ClientBatch, DeviceDataset
from fedactors.engines.cuda_graph import CudaGraphEngine, _RecordedBatch
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.graph_widths import rounded, widths
from fedactors.engines.local_work import LocalWork
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.fleet.workers import ClientHost
from fedactors.learning import chunks
from fedactors.learning.chunks import chunk_sizes
from fedactors.learning.trainer import Trainer
from fedactors.models.layers import Flatten, dense, stack
from fedactors.models.network import initial
from fedactors.models.paper_models import FslCifar, LeastSquares, Mlp
from fedactors.models.sequence_layers import Embedding
from tests.engines.test_engines import MODELS, Pulled, chunk, engine_for, engine_of, samples, task, with_engine
from tests.learning.test_two_losses import Half

EVERY = {**MODELS, "squared": LeastSquares().build((12,), 3), "bf16": replace(MODELS["dropout"], precision="bf16")}
WORK = chunk((10, 0, 7, 2, 1), model_indices=(0, 1, 1, 0, 1), weights=(0.5, 1.0, 0.25, 2.0, 1.0))


UNFIT = "_local_scalar_dense", "lift_fresh", "nonzero", "unique", "masked_select"  # what a capture cannot hold


class Traced:
    """Records a step as the operations of its first run, like a capture, and counts recordings."""

    def __init__(self):
        self.recordings = 0

    def __call__(self, step):
        self.recordings += 1
        traced = make_fx(step)()
        for node in traced.graph.nodes:
            assert not any(word in str(node.target) for word in UNFIT), f"{node.target} waits for the host"
        return traced


def with_steps(record, training_task, data):
    return with_engine(CudaGraphEngine(record), training_task, data)


def starts_of(model):
    return [{"x": initial(replace(model, start="uniform"), seed)} for seed in (1, 2)]


@pytest.mark.parametrize("algorithm", [FedAvg(), Pulled(), Half()], ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("name", EVERY)
def test_a_step_on_tensors_that_stay_is_the_step_of_the_other_engines(name, algorithm):
    model, sent = EVERY[name], starts_of(EVERY[name])
    training_task, data = replace(task(model), algorithm=algorithm), samples(model)
    found = with_steps(None, training_task, data).learn(WORK, sent)
    for other in (
        DenseBatchedEngine if DenseBatchedEngine().supports(LocalWork(model), "cuda") else VmapEngine,
        *([] if name == "bf16" else [SequentialEngine]),
    ):
        wanted = with_engine(other, training_task, data).learn(WORK, sent)
        np.testing.assert_allclose(found.sums["delta"], wanted.sums["delta"], rtol=1e-5, atol=1e-6)
        assert found.loss == pytest.approx(wanted.loss, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("logistic", FedAvg()),
        *(pytest.param(name, Pulled(), marks=[pytest.mark.slow] * (name != "mlp")) for name in EVERY),
    ],
)
def test_a_step_recorded_once_serves_every_step_of_every_chunk(name, algorithm):
    """The recording is made in a chunk of other trips at another rate, and gives the bits of a step run each time."""
    model, sent, record = EVERY[name], starts_of(EVERY[name]), Traced()
    training_task, data = replace(task(model), algorithm=algorithm), samples(model)
    learns, again = with_steps(None, training_task, data), with_steps(record, training_task, data)
    columns = {"base_versions": (1,) * 5, "model_indices": (1, 1, 0, 0, 1), "steps": (4, 3, 4, 3, 1)}
    before = WORK._replace(version=1, lr=0.3, **columns)
    again.learn(before, sent)
    again.learn(WORK._replace(steps=(10, 0, 7, 2, 1)), sent)
    made = record.recordings
    once = again.learn(WORK, sent)
    assert record.recordings == made <= 2 * 3, "five rows, three and two"
    expected = learns.learn(WORK, sent)
    assert np.array_equal(once.sums["delta"], expected.sums["delta"])
    assert once.loss == expected.loss


@pytest.mark.slow
def test_convolutions_with_dropout_are_recorded():
    model = FslCifar().build((3, 32, 32), 10)
    sent, data, work = [{"x": initial(model, 1)}], samples(model), chunk((3, 0, 2, 1, 1))
    traced = with_steps(Traced(), task(model), data).learn(work, sent)
    one = with_engine(SequentialEngine, task(model), data).learn(work, sent)
    np.testing.assert_allclose(traced.sums["delta"], one.sums["delta"], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_everything_in_a_step_lies_on_one_gpu(name):
    """On tensors that say they do: operations across devices, and values read by the host, are errors there."""
    model = MODELS[name]
    with FakeTensorMode():
        x, y = torch.empty(50, *model.input_shape, device="cuda"), torch.zeros(50, dtype=torch.int64, device="cuda")
        vectors, keys = torch.empty(2, model.parameters, device="cuda"), y[:2]
        rows = ClientBatch((0, 1), (3, 2), (), (), keys, vectors, vectors, 0.3, 0.1)
        recorded = _RecordedBatch(DeviceDataset(model, x, y), rows, 10, 5, 4, lambda step: step)
        recorded.step_of(4)()
        trained = recorded.result(rows, 3)
    assert trained.deltas.device.type == trained.losses.device.type == "cuda"
    assert trained.losses.shape == (2, 3)


@pytest.mark.parametrize("name", ["logistic", "deep", "squared"])
@pytest.mark.parametrize("algorithm", [FedAvg(), Pulled()], ids=lambda a: type(a).__name__)
def test_a_row_that_is_done_does_not_move_and_company_changes_no_bit(name, algorithm):
    """Client 3, with one step, in a chunk of ten steps and of one; what it may not see, sample 0, is not a number."""
    model, sent = EVERY[name], starts_of(EVERY[name])
    training_task, data = replace(task(model), algorithm=algorithm), samples(model)
    data.x[0] = np.nan
    learns = with_steps(None, training_task, data)
    alone = (0.0, 0.0, 0.0, 1.0, 0.0)
    long = learns.learn(chunk((0, 6, 10, 1, 5), weights=alone), sent)
    short = learns.learn(chunk((1, 1), clients=(2, 3), weights=alone[2:4]), sent)
    fresh = with_steps(None, training_task, data).learn(chunk((1, 1), clients=(2, 3), weights=alone[2:4]), sent)
    assert np.isfinite(long.sums["delta"]).all()
    assert np.array_equal(long.sums["delta"], short.sums["delta"])
    assert np.array_equal(fresh.sums["delta"], short.sums["delta"])
    assert fresh.loss == short.loss


def test_a_bad_update_is_named_and_leaves_nothing_behind():
    model, data = MODELS["mlp"], samples(MODELS["mlp"])
    data.x[data.split.of(2)[5]] = np.nan
    learns, sent = with_steps(None, task(model), data), [{"x": initial(model, 1)}]
    learned = learns.learn(chunk((4, 2, 8, 1, 4)), sent)
    wanted = with_engine(DenseBatchedEngine, task(model), data).learn(chunk((4, 2, 8, 1, 4)), sent)
    assert learned.bad == wanted.bad
    assert [client for client, _ in learned.bad] == [2]
    calm = chunk((4, 2, 1, 4), clients=(0, 1, 3, 4))
    after, fresh = (one.learn(calm, sent) for one in (learns, with_steps(None, task(model), data)))
    assert np.array_equal(after.sums["delta"], fresh.sums["delta"])


def test_results_are_no_part_of_what_the_next_chunk_writes_to():
    model = MODELS["mlp"]
    kept = []

    class Keeping(CudaGraphEngine):
        def train(self, dataset, rows):
            kept.append(super().train(dataset, rows))
            return kept[-1]

    learns, sent = with_engine(Keeping, task(model), samples(model)), starts_of(model)
    for steps, clients in (((1,), (0,)), ((3, 2), (0, 2))):
        learns.learn(chunk(steps, clients), sent[:1])
        before = [part.clone() for part in kept[-1][:2]]
        learns.learn(chunk((9, 9), (2, 4), lr=0.5), sent[1:])
        assert all(torch.equal(a, b) for a, b in zip(before, kept[-2][:2], strict=True))


def test_while_a_gpu_works_the_next_chunk_is_shuffled_and_no_trip_twice(monkeypatch):
    model, asked, original = MODELS["mlp"], [], batches.sequences
    host = ClientHost(task(model), samples(model))
    chunks, sent = [chunk((4, 3), (0, 2)), chunk((2, 5), (1, 4)), chunk((1, 2), (3, 2))], starts_of(model)[0]
    chunks = [one._replace(place=number) for number, one in enumerate(chunks)]
    expected = host.learn(chunks, sent)
    monkeypatch.setattr(
        batches, "sequences", lambda seed, clients, *more: asked.extend(clients) or original(seed, clients, *more)
    )
    monkeypatch.setattr(Trainer, "groups", lambda self, chunks: [[chunk] for chunk in chunks])
    host.device = "cuda"  # by name only
    learned = host.learn(chunks, sent)
    assert asked == [0, 2, 1, 4, 3, 2]
    for one, other in zip(learned, expected, strict=True):
        assert np.array_equal(one.sums["delta"], other.sums["delta"])


@given(st.lists(st.integers(0, 40), min_size=1, max_size=200).filter(any))
def test_stretches_cover_every_row_that_moves(steps):
    steps = sorted(steps, reverse=True)
    stretches = widths(steps)
    assert sum(times for _, times in stretches) == steps[0]
    at = 0
    for width, times in stretches:
        active = sum(count > at for count in steps)
        assert max(2, active) <= width
        assert at == 0 or width <= 2 * rounded(active) + 2, "no row is carried on that half as many would do without"
        at += times
    if all(steps):
        assert stretches[0][0] == rounded(max(2, len(steps)))


@given(st.integers(1, 5000))
def test_sizes_are_rounded_up_by_an_eighth_at_most(number):
    assert number <= rounded(number) <= max(number, number * 9 / 8)
    assert rounded(rounded(number)) == rounded(number)


def test_a_gpu_records_what_can_be_recorded_by_a_rule_that_looks_at_the_task_alone():
    plain, rounds = task(MODELS["mlp"]), replace(MODELS["mlp"], precision="bf16")
    assert engine_for(plain.model, "cuda") is CudaGraphEngine
    assert engine_of(task(rounds), "cuda") is CudaGraphEngine
    assert engine_of(replace(plain, algorithm=FedAMS()), "cuda") is DenseBatchedEngine
    assert engine_of(replace(task(rounds), algorithm=FedAMS()), "cuda") is VmapEngine
    assert engine_of(replace(plain, algorithm=ExampleTransfer()), "cuda") is VmapEngine
    assert engine_for(stack("words", (7,), Embedding(20, 4), Flatten(), dense(20)), "cuda") is VmapEngine


def test_a_gpu_is_given_chunks_that_keep_it_busy():
    small, wide = MODELS["logistic"], Mlp(hidden=[200]).build((1, 28, 28), 10)
    convolutions = FslCifar().build((3, 32, 32), 10)
    assert chunk_sizes(1000, small, "cuda") == [1000]
    assert chunk_sizes(3000, small, "cuda") == [1000, 1000, 1000]
    assert chunk_sizes(1000, wide, "cuda") == [500, 500]
    assert chunk_sizes(100, convolutions, "cuda") == [100]
    assert max(chunk_sizes(5000, convolutions, "cuda")) * convolutions.parameters <= chunks._GPU_CHUNK_VALUES


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", [*EVERY, "cnn"])
def test_a_cuda_graph_gives_the_bits_of_its_step(name):
    model = FslCifar().build((3, 32, 32), 10) if name == "cnn" else EVERY[name]
    training_task, data, sent = task(model), samples(model), starts_of(model)
    graph = Trainer(training_task, data, "cuda")
    eager = Trainer(training_task, data, "cuda", CudaGraphEngine(lambda step: step))
    for work in (chunk((2, 3), (0, 2)), WORK, WORK._replace(lr=0.02, steps=(3, 2, 2, 1, 1)), WORK):
        one, other = (learns.learn(work, sent) for learns in (eager, graph))
        assert np.array_equal(one.sums["delta"], other.sums["delta"])
        assert one.loss == other.loss
