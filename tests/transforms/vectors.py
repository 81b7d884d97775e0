"""What the tests of transforms share: layouts, random numbers that a test chooses, one message after the other."""

import torch

from fedactors.streams import Purpose
from fedactors.transforms.base import Given
from fedactors.transforms.draws import SenderDraws
from fedactors.transforms.wire import Layout, TensorPart, Wire


def layout(*shapes):
    """Return a layout of tensors "0", "1", … of these shapes."""
    parts, first = [], 0
    for number, shape in enumerate(shapes):
        parts.append(TensorPart(str(number), shape, first))
        first += parts[-1].size
    return Layout(tuple(parts), first)


def draws(clients, round=0, seed=3):
    return SenderDraws(seed, Purpose.UPLINK, list(range(clients)), [round] * clients)


def given(transform_layout, clients=1, round=0, wire=None, norm=0.0):
    return Given(transform_layout, wire or Wire(transform_layout.size), draws(clients, round), norm)


def zeros(transform, transform_layout, clients=1):
    """Return what senders keep before their first message."""
    return {name: torch.zeros(clients, length) for name, length in transform.state(transform_layout).items()}


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Chosen:
    """Random numbers that a test has chosen: the same values for whatever is drawn."""

    seed = 0

    def __init__(self, values):
        self.values = values

    def uniform(self, size):
        return self.values

    def chosen(self, size, count):
        return self.values
