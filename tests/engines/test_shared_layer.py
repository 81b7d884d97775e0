"""A layer that several clients share against the weights that each would have by itself."""

import pytest
import torch

from fedactors.engines import shared_layer
from fedactors.engines.shared_layer import SharedLayer, batch_invariant, pays
from fedactors.learning.trainer import Trainer
from fedactors.models.layers import Dense
from tests.engines.test_engines import samples, task
from tests.learning.test_chunks import MODELS, PARTS

LR, INPUTS, OUTPUTS = 0.1, 30, 20


def test_clients_move_as_if_each_had_the_layer_to_itself():
    """Trips of three, one and two steps, of batches that are not equal: y - x = -lr sum_s e_s^T x_s."""
    draws = torch.Generator().manual_seed(1)
    batches = [[4, 4, 2], [12], [3, 5]]
    start = torch.randn(OUTPUTS, INPUTS, generator=draws)
    weights = [start.clone() for _ in batches]
    layer = SharedLayer(start, [sum(sizes) for sizes in batches], LR)
    for step in range(3):
        trips = [trip for trip, sizes in enumerate(batches) if step < len(sizes)]
        x = [torch.randn(batches[trip][step], INPUTS, generator=draws) for trip in trips]
        errors = [torch.randn(len(mine), OUTPUTS, generator=draws) for mine in x]
        for trip, mine, found in zip(trips, x, layer.outputs(trips, x), strict=True):
            torch.testing.assert_close(found, mine @ weights[trip].T, rtol=1e-4, atol=1e-4)
        for trip, error, mine, below in zip(trips, errors, x, layer.learn(trips, errors), strict=True):
            torch.testing.assert_close(below, error @ weights[trip], rtol=1e-4, atol=1e-4)
            weights[trip] -= LR * error.T @ mine
    for trip, weight in enumerate(weights):
        out = torch.ones_like(start)
        layer.add(trip, out, 0.5)
        torch.testing.assert_close(out, 1 + 0.5 * (weight - start), rtol=1e-4, atol=1e-5)


def test_it_is_for_large_layers_and_short_trips():
    assert pays(Dense(4096, 128), 50)
    assert not pays(Dense(4096, 128), 100)
    assert pays(Dense(3136, 512), 200)
    assert not pays(Dense(3136, 10), 1)


def sample_by_sample(x, factor):
    """Multiply as no library does: a sample's product has the same bits on every processor, whatever is beside it."""
    return torch.stack([sample @ factor for sample in x])


def test_a_processor_that_rounds_by_the_number_of_samples_is_found_out(monkeypatch):
    monkeypatch.setattr(shared_layer, "_product", sample_by_sample)
    assert batch_invariant.__wrapped__(Dense(300, 170))

    def rounds(x, factor):
        return sample_by_sample(x, factor) * (1 + 1e-6 * (len(x) == 9))

    monkeypatch.setattr(shared_layer, "_product", rounds)
    assert not batch_invariant.__wrapped__(Dense(300, 170))


@pytest.mark.parametrize("same", [True, False])
def test_where_products_round_by_the_number_of_samples_chunks_stay_apart(same, monkeypatch):
    model = MODELS["images"]
    monkeypatch.setattr(shared_layer, "batch_invariant", lambda layer: same)
    trainer = Trainer(task(model), samples(model))
    assert len(trainer.groups(PARTS)) == (1 if same else len(PARTS))
    workload = task(model).workloads[0]
    assert trainer._engine.parts_keep_bits(trainer._work, trainer._dataset, workload) is same
