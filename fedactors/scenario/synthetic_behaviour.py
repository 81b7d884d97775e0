"""Options of availability that is drawn from a law, not recorded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedactors.options import Options
from fedactors.scenario.units import Duration

Hour = Annotated[int, Field(ge=0, le=24)]


class SyntheticBehaviour(Options):
    """Windows by a law, not from a recording: phones that charge at night, live in time zones and know weekends.

    Virtual time 0 is Monday, 0:00 UTC; after `days` it begins again.
    """

    name: Literal["synthetic"] = "synthetic"
    mean_on: Duration = 3600 * 10**9
    """Mean length of a window."""
    mean_off: Duration = 4 * 3600 * 10**9
    """Mean time between windows, over the week."""
    sigma: Annotated[float, Field(ge=0.0, le=4.0)] | None = None
    """Standard deviation of the logarithm of a window's length; exponential lengths when absent."""
    night: float = Field(default=1.0, gt=0.0, le=1000.0)
    """How many times likelier a device comes on at night than by day."""
    night_from: Hour = 22
    night_until: Hour = 7
    """The night, by the clock of the device's zone."""
    weekend: float = Field(default=1.0, gt=0.0, le=1000.0)
    """How many times likelier it comes on during a weekend than on a weekday."""
    zones: list[Annotated[int, Field(ge=-12, le=14)]] = Field(default=[0], min_length=1)
    """Time zones, in hours ahead of UTC; each device lives in one of them, by lot."""
    days: int = Field(default=7, ge=1, le=366)
    """After how many days the windows repeat; whole weeks keep weekends where they are."""

    @model_validator(mode="after")
    def _check_times(self) -> SyntheticBehaviour:
        if not self.mean_on or not self.mean_off:
            raise ValueError("mean_on and mean_off must be longer than 0")
        if self.night_from == self.night_until:
            raise ValueError("night_from and night_until must differ; night: 1 makes the night like the day")
        return self
