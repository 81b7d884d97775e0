"""Signs: Karimireddy et al., Error Feedback Fixes SignSGD and other Gradient Compression Schemes, 2019, Algorithm 1.

    p <- update + e ;  send (|p|_1 / d) sign(p) ;  e <- p - what was sent

One bit for each value and 32 for the scale. Where values were left out before, only those that are there have a sign,
and d is their number. `error_feedback: false` is the scaled sign without memory, which need not converge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fedactors.transforms.base import Compressor, Given, entries
from fedactors.transforms.wire import FLOAT, Layout, Wire

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class Signs(Compressor):
    """Sends the sign of each value, and one scale for all."""

    name: Literal["signs"] = "signs"
    error_feedback: bool = True
    """Whether a sender adds what it could not send last time to what it sends."""

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return a bit for each value, and one scale."""
        return entries(wire, self.name)._replace(bits=1, extra=wire.extra + FLOAT)

    def compress(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Replace each value by its sign times the row's mean size."""
        scale = rows.abs().sum(1, keepdim=True) / given.wire.values
        if given.wire.values < rows.shape[1]:
            return rows.sign() * scale, {}
        return scale.where(rows >= 0, -scale), {}
