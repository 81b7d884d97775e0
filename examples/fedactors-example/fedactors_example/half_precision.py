"""Half precision: each value travels as a 16-bit float (IEEE 754), rounded to the nearest.

    send float16(p)

Values above 65,504 become infinite, which is found as any bad update is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fedactors.transforms.base import Compressor, Given, entries
from fedactors.transforms.wire import Layout, Wire

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class HalfPrecision(Compressor):
    """Sends 16 bits of each value."""

    name: Literal["half-precision"] = "half-precision"

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return 16 bits for each value."""
        return entries(wire, self.name)._replace(bits=16)

    def compress(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Round each value."""
        return rows.half().to(rows.dtype), {}
