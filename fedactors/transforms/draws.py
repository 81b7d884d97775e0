"""Random numbers for rows: each row's come from the stream of its sender and its trip, on any host, in any chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fedactors.streams import Purpose, stream

if TYPE_CHECKING:
    from torch import Tensor


class SenderDraws:
    """The streams of (seed, purpose, sender, round), one for each row; what is drawn is `(rows, size)`."""

    def __init__(self, seed: int, purpose: Purpose, senders: Sequence[int], rounds: Sequence[int]) -> None:
        self.seed = seed
        self.of = list(zip(senders, rounds, strict=True))
        self._purpose = purpose

    @cached_property
    def _streams(self) -> list[np.random.Generator]:
        return [stream(self.seed, self._purpose, sender, round) for sender, round in self.of]

    def only(self, row: int) -> SenderDraws:
        """Return the random numbers of one row, from where they are now; they go on apart from these."""
        found = SenderDraws(self.seed, self._purpose, *zip(self.of[row], strict=True))
        found.__dict__["_streams"] = [deepcopy(self._streams[row])]
        return found

    def uniform(self, size: int) -> Tensor:
        """Return numbers from [0, 1)."""
        return self._stacked(lambda one: one.random(size, dtype=np.float32))

    def normal(self, size: int) -> Tensor:
        """Return numbers with mean 0 and variance 1."""
        return self._stacked(lambda one: one.standard_normal(size, dtype=np.float32))

    def laplace(self, size: int) -> Tensor:
        """Return numbers of Laplace's law with scale 1."""
        return self._stacked(lambda one: one.laplace(size=size).astype(np.float32))

    def chosen(self, size: int, count: int) -> Tensor:
        """Return `count` of `size` places, without replacement."""
        return self._stacked(lambda one: one.choice(size, count, replace=False, shuffle=False))

    def _stacked(self, draw: Callable[[np.random.Generator], Any]) -> Tensor:
        import torch

        return torch.from_numpy(np.stack([draw(one) for one in self._streams]))


def shared_normal(seed: int, purpose: Purpose, size: int) -> Tensor:
    """Return numbers with mean 0 and variance 1, the same for all senders: `(size,)`."""
    import torch

    return torch.from_numpy(stream(seed, purpose, 2**40).standard_normal(size, dtype=np.float32))
