"""QSGD: Alistarh et al., QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding, 2017, section 3.1.

    Q(v)_j = |v| sign(v_j) xi_j / s
    with a_j = s |v_j| / |v|:   xi_j = floor(a_j) + 1 with probability a_j - floor(a_j), else floor(a_j)

E[Q(v)] = v. One of the b bits is the sign, the others the level: s = 2^(b-1) - 1; |v| takes 32 bits more. |v| is the
Euclidean norm, as in the paper's analysis, or the largest |v_j| (`scale: max`), as in its experiments.

Deviations: levels have a fixed number of bits, where the paper's Elias code has fewer for small ones; the vector is one
bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fedactors.errors import ScenarioError
from fedactors.transforms.base import Compressor, Given, entries
from fedactors.transforms.row_norms import row_norms
from fedactors.transforms.wire import FLOAT, Layout, Wire

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class Quantize(Compressor):
    """Rounds each value to one of a few levels, up or down at random, so that its mean is right."""

    name: Literal["quantize"] = "quantize"
    bits: int = Field(default=8, ge=2, le=16)
    """Bits of a value, the sign among them."""
    scale: Literal["l2", "max"] = "l2"
    """What the highest level stands for: the vector's norm, or its largest entry."""

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return fewer bits for each value, and one scale. Raises ScenarioError if what is fed back would grow."""
        if self.error_feedback and self._too_coarse(wire.values):
            raise ScenarioError(
                f"levels of the norm of {wire.values:,} values are too coarse for error feedback: what is left out"
                " would grow from message to message (accepted: more bits, scale: max, or error_feedback: false)"
            )
        return entries(wire, self.name)._replace(bits=self.bits, extra=wire.extra + FLOAT)

    def overshoots(self, layout: Layout) -> str:
        """Refuse levels that are too coarse for differences."""
        if self.error_feedback or not self._too_coarse(layout.size):
            return super().overshoots(layout)
        return (
            f"levels of the norm of {layout.size:,} values are too coarse for differences (accepted: more bits, or"
            " scale: max)"
        )

    def _too_coarse(self, values: int) -> bool:
        """Whether the error may be as large as the vector: min(d / s^2, sqrt(d) / s), Lemma 3.1 of the paper, >= 1."""
        levels = 2 ** (self.bits - 1) - 1
        return self.scale == "l2" and min(values / levels**2, values**0.5 / levels) >= 1

    def compress(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Round each row to its own levels."""
        levels = 2 ** (self.bits - 1) - 1
        size = row_norms(rows) if self.scale == "l2" else rows.abs().amax(1, keepdim=True)
        unit = size / levels
        places = rows.abs() / unit.where(unit > 0, size.new_ones(1))
        below = places.floor()
        up = given.draws.uniform(rows.shape[1]).to(rows.device) < places - below
        return rows.sign() * unit * (below + up).clamp(max=levels), {}
