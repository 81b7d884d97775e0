"""Gaussian noise: McMahan et al., Learning Differentially Private Recurrent Language Models, 2018 (DP-FedAvg).

    uplink: [{name: clip, norm: S}, {name: gaussian, multiplier: z}]

    added: server    once in a round, to sum_i w_i Delta_i :      deviation z S max_i w_i
    added: clients   each client, to its own Delta_i :            deviation z S / sqrt(over)

Of clients that add a share each, `over` says among how many the noise is divided: fewer heard make less noise than z,
and epsilon is worked out from those who were. With `over: 1` each client's own update is as noisy as z says, for a
server that is not trusted (local privacy).

`deviation` in place of `multiplier` is plain noise, which guarantees nothing. max_i w_i is the largest weight of the
round; an upload that is summed without weights has weight 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fedactors.transforms.base import Given
from fedactors.transforms.noise import Noise

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class GaussianNoise(Noise):
    """Adds Gaussian noise."""

    name: Literal["gaussian"] = "gaussian"

    @property
    def wants_bound(self) -> int | None:
        """The Euclidean norm, unless the noise has a deviation of its own."""
        return None if self.multiplier is None else 2

    def apply(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Add noise to each row."""
        return rows + self.size(given) * given.draws.normal(rows.shape[1]).to(rows.device), {}
