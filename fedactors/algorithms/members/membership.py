"""Means over the whole population, kept right when devices join it or leave it for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedactors.learning.algorithm import Round

if TYPE_CHECKING:
    from torch import Tensor


def mean_after(mean: Tensor, round: Round, departed_vectors: Sequence[Tensor]) -> Tensor:
    """Return the mean over a population's vectors after the departures and arrivals of `round`.

    `mean` is over `round.members` devices; `departed_vectors` are those of the devices that departed, as far as not
    zero; those that arrive bring zeros. Without members it is zero.
    """
    total = mean * round.members
    for vector in departed_vectors:
        total = total - vector
    left = round.members - len(round.departed) + len(round.arrived)
    return total / left if left > 0 else mean.new_zeros(mean.shape)
