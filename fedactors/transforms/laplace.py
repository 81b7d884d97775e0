"""Noise of Laplace's law: Dwork et al., Calibrating Noise to Sensitivity in Private Data Analysis, 2006.

    uplink: [{name: clip, norm: S, order: 1}, {name: laplace, multiplier: b}]

Each value gets noise of the scale b S max_i w_i, or b S / sqrt(over) from each client. One update then costs a device
epsilon = 1 / b without any delta (added by the server, or by clients with `over: 1`), and k updates k / b. Noise that
clients share costs sqrt(over) / b, as of a sum of Laplace noise the longest one alone decides how long the tails are.
`deviation` in place of `multiplier` is the scale itself; it guarantees nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fedactors.transforms.base import Given
from fedactors.transforms.noise import Noise

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class LaplaceNoise(Noise):
    """Adds noise of Laplace's law."""

    name: Literal["laplace"] = "laplace"

    @property
    def wants_bound(self) -> int | None:
        """The sum of absolute values, unless the noise has a scale of its own."""
        return None if self.multiplier is None else 1

    def apply(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Add noise to each row."""
        return rows + self.size(given) * given.draws.laplace(rows.shape[1]).to(rows.device), {}
