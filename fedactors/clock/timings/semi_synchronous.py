"""Semi-synchronous rounds: the server aggregates at fixed intervals what has arrived by then.

    at the beginning of a period, ask as many clients as are missing to `concurrency`, with the newest model
    at its end, aggregate what arrived in it ; those still at work go on, and count in the period in which they arrive

Between synchronous rounds, which lose what is late, and FedBuff, which fixes the number of updates and not the time.
With a deadline as long as the period nobody is ever late for more than one of them: these are synchronous rounds of
fixed length. A period in which nothing arrives is recorded as an empty round; while nobody at all can be asked, time
passes without one.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedactors.clock.timings.base import Asynchronous
from fedactors.plan import Time
from fedactors.scenario.units import Duration


class SemiSynchronous(Asynchronous):
    """Aggregate periodically whatever has arrived."""

    name: Literal["semi-synchronous"] = "semi-synchronous"
    period: Duration = Field(gt=0)
    """Virtual time between aggregations."""

    @property
    def every(self) -> Time:
        """Return the period."""
        return self.period
