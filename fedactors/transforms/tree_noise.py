"""DP-FTRL: Kairouz et al., Practical and Private (Deep) Learning without Sampling or Shuffling, 2021; the noise is that
of tree aggregation: Dwork et al. 2010, Chan et al. 2011.

    uplink: [{name: clip, norm: S}, {name: tree, multiplier: z, weight: W}]

    node (l, i) covers rounds [i 2^l, (i + 1) 2^l) and has noise g(l, i) of deviation z S W
    N(t) = sum of g over the nodes that cover the first t rounds, one for each bit of t
    server, round t (from 0):  sum_i w_i Delta_i + N(t + 1) - N(t)

With FedAvg and `global_lr: 1`, the model after t rounds is x_0 plus all sums plus N(t): DP-FTRL without momentum and
without restarts. Its variance grows with log2 t, where that of independent noise grows with t; a device that takes part
once is in log2 T + 1 nodes. Nothing has to be sampled, which suits devices that come when they can.

W is the weight that noise is made for, such as one over the cohort. A round in which an update weighs more costs its
device more, in proportion. A node's noise is drawn from its own stream, so the server keeps nothing. A round without
updates adds no noise and is no round of the tree: t counts those in which somebody was heard.
"""  # noqa: D205 - the citation takes two lines

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedactors.streams import Purpose, stream
from fedactors.transforms.base import Given, UpdateTransform

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors

_VECTORS = 2**20  # streams of one vector's nodes are so many levels and vectors apart


class TreeNoise(UpdateTransform):
    """Adds noise to each round so that the sum over all rounds has little."""

    skips_empty_rounds: ClassVar[bool] = True

    name: Literal["tree"] = "tree"
    multiplier: float = Field(gt=0.0)
    """Deviation of a node's noise over the norm that updates are clipped to, times `weight`."""
    weight: float = Field(gt=0.0)
    """The weight of an update that the noise is made for, such as one over the cohort."""

    @property
    def at_server(self) -> bool:
        """The server adds it."""
        return True

    @property
    def wants_bound(self) -> int | None:
        """The Euclidean norm."""
        return 2

    def apply(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Add N(t + 1) - N(t) to the one row, the sum of a round."""
        import torch

        ((vector, done),) = given.draws.of
        added = np.zeros(rows.shape[1], np.float32)
        for sign, rounds in ((1, done + 1), (-1, done)):
            for level, place in nodes(rounds):
                draws = stream(given.draws.seed, Purpose.TREE, level * _VECTORS + vector, place)
                added += sign * draws.standard_normal(len(added), dtype=np.float32)
        return rows + self.multiplier * given.norm * self.weight * torch.from_numpy(added).to(rows), {}


def nodes(rounds: int) -> Iterator[tuple[int, int]]:
    """Yield (level, place) of the nodes that cover the first so many rounds: one for each bit of the number."""
    done = 0
    for level in reversed(range(rounds.bit_length())):
        if rounds >> level & 1:
            yield level, done >> level
            done += 1 << level
