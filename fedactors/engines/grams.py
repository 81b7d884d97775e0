"""Inner products of clients' samples, which do not change from trip to trip: computed in a client's first trip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.data.holdings import Holdings
from fedactors.workload import Workload

ROOM = 2**26  # bytes for the products of all clients, on a host


def fit(works: Iterable[Workload]) -> bool:
    """Whether the products of all clients fit into the memory meant for them."""
    return sum(4 * (work.pass_samples + work.batch - 1) ** 2 for work in works) <= ROOM


class Grams:
    """<x_i, x_j> + 1 of each client's samples; the 1 stands for a bias.

    Args:
        x: all samples, flat, `(n, inputs)`.
        split: which of them each client holds, in every trip.

    """

    def __init__(self, x: Tensor, split: Holdings) -> None:
        self._x = x
        self._split = split
        self._kept: dict[int, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}

    def write(self, client: int, order: Sequence[int] | NDArray[np.int64], out: Tensor) -> None:
        """Write the products of some samples of `client` to `out`, (T, T), in this order; samples may be repeated."""
        held, products = self._of(client)
        places = np.searchsorted(held, order)
        products.take(places, 0).take(places, 1, out=out.numpy(), mode="clip")

    def _of(self, client: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        if client not in self._kept:
            held = np.unique(self._split.of(client))
            x = self._x.index_select(0, torch.from_numpy(held))
            self._kept[client] = held, torch.addmm(x.new_ones(()), x, x.T).numpy()
        return self._kept[client]
