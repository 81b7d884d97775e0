"""The server's step along the clients' mean update, eta_g: a number, or the square root of the number of clients."""

from __future__ import annotations

from math import sqrt
from typing import Annotated, Literal

from pydantic import Field

GlobalRate = Annotated[float, Field(ge=0.0)] | Literal["sqrt_heard"] | None


def global_step(rate: float | Literal["sqrt_heard"] | None, heard: int, cohort: int) -> float:
    """Return eta_g of a round: `rate`, or the square root of S = |S_t|, the updates heard, or of the cohort (None)."""
    if rate == "sqrt_heard":
        return sqrt(max(1, heard))
    return sqrt(cohort) if rate is None else rate
