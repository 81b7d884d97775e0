"""What all noise has in common: how large it is, who adds it, and among how many clients it is divided."""

from __future__ import annotations

from math import sqrt
from typing import Literal

from pydantic import Field, model_validator

from fedactors.transforms.base import Given, UpdateTransform
from fedactors.transforms.wire import Layout, Wire


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
    def _check_noise_size(self) -> Noise:
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
        return wire if self.at_server else Wire(layout.size, counts=wire.counts)

    def size(self, given: Given) -> float:
        """Return the size of the noise in each value."""
        if self.multiplier is None:
            return self.deviation or 0.0
        return self.multiplier * given.norm * given.largest / sqrt(self.over)
