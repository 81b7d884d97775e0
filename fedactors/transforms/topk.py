"""Top-k: Aji and Heafield, Sparse Communication for Distributed Gradient Descent, 2017; Stich et al., Sparsified SGD
with Memory, 2018.

    send the k entries of p with the largest |p_j|, each with its place ; the others arrive as 0

k is a share of the values that travel, at least one. Each entry costs its own bits and ceil(log2(values)) for its
place. It is biased: with error feedback nothing is lost for good.
"""  # noqa: D205 - the citation takes two lines

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fedactors.transforms.base import Compressor, Given, entries
from fedactors.transforms.wire import Layout, Wire, index_bits, share_of

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class TopK(Compressor):
    """Sends the largest entries only."""

    name: Literal["topk"] = "topk"
    share: float = Field(gt=0.0, le=1.0)
    """How many of the values are sent, as a share."""

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return k entries and their places."""
        count = min(entries(wire, self.name).values, share_of(self.share, layout.size))
        return self.at_full_size(wire)._replace(values=count, extra=wire.extra + count * index_bits(layout.size))

    def compress(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Keep the k largest of each row."""
        places = rows.abs().topk(share_of(self.share, rows.shape[1]), 1, sorted=False).indices
        return rows.new_zeros(rows.shape).scatter(1, places, rows.gather(1, places)), {}
