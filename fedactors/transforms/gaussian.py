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

from math import sqrt
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from fedactors.transforms.base import Given, UpdateTransform
from fedactors.transforms.wire import Layout, Wire

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class Noise(UpdateTransform):
    """Base of noise that is added to updates or to their sum."""

    name: str
    multiplier: float | None = Field(default=None, gt=0.0)
    """Deviation of the noise over the norm that updates are clipped to just before it."""
    deviation: float | None = Field(default=None, gt=0.0)
    """Deviation of the noise as it is, in place of a multiplier; no guarantee comes with it."""
    added: Literal["server", "clients"] = "server"
    """Who adds it: the server to the sum of a round, or each client to its own update."""
    over: int = Field(default=1, ge=1)
    """Among how many clients the noise of one round is divided, where clients add it."""

    @model_validator(mode="after")
    def _one_size(self) -> Noise:
        if (self.multiplier is None) == (self.deviation is None):
            raise ValueError("give either multiplier or deviation")
        if self.over > 1 and self.added == "server":
            raise ValueError("over divides the noise that clients add (accepted: it with added: clients)")
        return self

    @property
    def at_server(self) -> bool:
        """Whether the server adds the noise."""
        return self.added == "server"

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return all values at full size where clients add noise: there is nothing left to leave out."""
        return wire if self.at_server else Wire(layout.size)

    def size(self, given: Given) -> float:
        """Return the size of the noise in each value."""
        if self.multiplier is None:
            return self.deviation or 0.0
        return self.multiplier * given.norm * given.largest / sqrt(self.over)


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
