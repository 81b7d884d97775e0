"""How gradients are clipped: what a scenario says under `clip`, without torch; `optim.clipping` computes it."""

from __future__ import annotations

from pydantic import Field, model_validator

from fedactors.options import Options


class Clip(Options):
    """A bound of each local gradient: of its norm over the whole model, or of each of its values."""

    norm: float | None = Field(default=None, gt=0.0)
    """A gradient with a larger Euclidean norm is scaled down to this one."""
    value: float | None = Field(default=None, gt=0.0)
    """Each value is cut to between minus this and this."""

    @model_validator(mode="after")
    def _check_norm_or_value(self) -> Clip:
        if (self.norm is None) == (self.value is None):
            raise ValueError("give either norm or value")
        return self
