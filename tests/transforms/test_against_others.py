"""Quantisation and low rank against implementations of others: Flower's stochastic quantiser, PyTorch's PowerSGD hook.

Flower need not be installed. Where it is in an environment of its own:

    PYTHONPATH=$PWD:/path/to/environment/lib/python3.11/site-packages pytest tests/transforms/test_against_others.py
"""

import os
from multiprocessing import get_context

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

from fedactors.transforms.lowrank import LowRank
from fedactors.transforms.quantize import Quantize
from tests.transforms.vectors import given, layout, normal

SIZE = 4000


class Drawn:
    """Random numbers for all rows; Flower has to be given the same, turned round where it rounds towards zero."""

    seed = 0

    def __init__(self, numbers):
        self.numbers = numbers

    def uniform(self, size):
        return torch.from_numpy(self.numbers[None])


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_quantisation_is_flowers(bits, monkeypatch):
    """With the largest value as its range, and 2 s steps, Flower has our levels; we round sizes, Flower values.

    So a value below 0 that we round up is one that Flower rounds down: the same random number u serves both, as u for
    these, and as 1 - u for the others.
    """
    flower = pytest.importorskip("flwr.common.secure_aggregation.quantization", reason="Flower is not installed")
    row = normal(1, SIZE, seed=3)
    numbers = np.random.Generator(np.random.Philox(5)).random(SIZE).astype(np.float32)
    ours, _ = Quantize(bits=bits, scale="max").compress(row, {}, given(layout((SIZE,)))._replace(draws=Drawn(numbers)))
    values = row[0].double().numpy()
    monkeypatch.setattr(np.random, "rand", lambda *shape: np.where(values < 0, numbers, 1 - numbers))
    largest, steps = float(np.abs(values).max()), 2 * (2 ** (bits - 1) - 1)
    whole = flower.quantize([values], largest, steps)
    (theirs,) = flower.dequantize(whole, largest, steps)
    different = np.abs(ours[0].numpy() - theirs) > 1e-5
    assert different.mean() < 0.001  # where a number lies on the edge, to the last place of float32
    assert len(np.unique(whole[0])) > steps / 2


@pytest.mark.slow
def test_lowrank_is_the_hook_of_pytorch(tmp_path):
    """In a process of its own, the only one of its group, since threads of a group may outlive it."""
    process = get_context("spawn").Process(target=compare_with_the_hook, args=(str(tmp_path / "store"),))
    process.start()
    process.join()
    assert process.exitcode == 0


def compare_with_the_hook(store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    for rank in (1, 2, 4):
        compare_at_rank(rank)
    os._exit(0)


def compare_at_rank(rank):
    """Gradients that a test chooses, through DDP with PowerSGD's hook, and through ours from its first message on.

    Six further messages with error feedback and a warm start; what the hook keeps after the first one is given to ours.
    """
    model = torch.nn.Linear(30, 40)
    state = PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2, orthogonalization_epsilon=1e-8)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    ddp.register_comm_hook(state, powerSGD_hook)
    wide, ours = layout((40, 30), (40,)), LowRank(rank=rank)
    kept, compared = None, 0
    for step in range(9):  # the first two are sent whole
        weight, bias = normal(40, 30, seed=step), normal(40, seed=100 + step)
        model.zero_grad()
        ddp(torch.zeros(1, 30))
        ((model.weight * weight).sum() + (model.bias * bias).sum()).backward()
        if kept is not None:
            sent, kept = ours.apply(torch.cat([weight.flatten(), bias])[None], kept, given(wide))
            torch.testing.assert_close(model.weight.grad.flatten(), sent[0, :1200], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(model.bias.grad, sent[0, 1200:])
            compared += 1
        elif state.q_memory_dict:
            left = weight - model.weight.grad
            assert left.abs().max() > 0.1
            kept = {"q": state.q_memory_dict[0].clone()[None], "error": torch.cat([left.flatten(), bias * 0])[None]}
    assert compared == 6
