"""Participation that is drawn from a law, not emerging from timing: for comparison with papers that sample it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedactors.options import Options

Trace = Literal["T0", "T30", "T50", "T70", "T90", "Thi", "Tmi", "Tlo"]


Laws = Trace | list[Trace]  # the short form of `SampledParticipation`


def short(value: object) -> object:
    """Take `T30` for `{traces: [T30]}`, and a list for the traces of one."""
    if isinstance(value, str):
        return {"traces": [value]}
    return {"traces": value} if isinstance(value, list) else value


class SampledParticipation(Options):
    """A sampled participation trace of Ruan et al. (AISTATS 2021), Table 2: each round a share of the epochs is drawn.

    The draw sets how fast a device computes in that round, so that exactly the drawn number of epochs fits before the
    deadline; where it is none, the device has no link in that round.
    """

    traces: list[Trace] = Field(min_length=1)
    """Which laws; the k-th device takes the k-th (again from the first when they run out), or one by lot."""
    assign: Literal["in_order", "shuffle"] = "in_order"
    levels: int | None = Field(default=None, ge=1, le=10_000)
    """In how many parts the work is counted; the local epochs, or else the local steps (at most 1,000), when absent."""
