"""Random-k: Wangni et al., Gradient Sparsification for Communication-Efficient Distributed Optimization, 2018; Stich
et al., Sparsified SGD with Memory, 2018.

    send k entries, drawn at random without replacement, times (values / k) ; the others arrive as 0

E[what arrives] = p. With error feedback the factor is 1: the rest is sent later. Both sides draw the places from one
seed, so that no place is sent, but 64 bits of seed.
"""  # noqa: D205 - the citation takes two lines

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fedactors.errors import ScenarioError
from fedactors.transforms.base import Compressor, Given, entries
from fedactors.transforms.wire import Layout, Wire, share_of

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors

_SEED = 64  # bits


class RandomK(Compressor):
    """Sends entries that are drawn at random."""

    name: Literal["randomk"] = "randomk"
    share: float = Field(gt=0.0, le=1.0)
    """How many of the values are sent, as a share."""

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return k entries and a seed."""
        if entries(wire, self.name).values != layout.size:
            raise ScenarioError("randomk draws among all values, and some are left out before it (accepted: it first)")
        return self.at_full_size(wire)._replace(values=share_of(self.share, layout.size), extra=wire.extra + _SEED)

    def overshoots(self, layout: Layout) -> str:
        """Refuse: the scale makes entries too large by as much as others are too small."""
        return "entries that are scaled up overshoot, and so would the differences that follow (accepted: topk)"

    def compress(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Keep k of each row."""
        count = share_of(self.share, rows.shape[1])
        places = given.draws.chosen(rows.shape[1], count).to(rows.device)
        scale = 1.0 if self.error_feedback else rows.shape[1] / count
        return rows.new_zeros(rows.shape).scatter(1, places, rows.gather(1, places) * scale), {}
