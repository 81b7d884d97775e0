"""What devices consume, and what a run may spend in all."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from fedactors.options import Options
from fedactors.scenario.costs.power_units import Amount, Intensity, Mass, Power
from fedactors.scenario.units import Energy, Size

STAGES = ("down", "compute", "up", "idle")


class Consumption(Options):
    """What a device's battery pays in a trip."""

    per_step: Energy = 0
    """For a local step, whether or not the server gets to see it."""
    per_byte: Energy = 0
    """For a byte that crosses its link, down or up."""
    down: Power = 0
    """While it downloads: `0.8 W`."""
    compute: Power = 0
    """While it takes local steps: `3 W`."""
    up: Power = 0
    """While it uploads: `1.2 W`."""
    idle: Power = 0
    """While it is on and waits in a trip, because there is nothing it could still do in time: `0.1 W`. A battery pays
    it between trips as well; while a device is off it pays nothing."""
    carbon: Intensity | None = None
    """What its electricity emits: `400 g/kWh` of CO2 equivalents."""

    @property
    def has_watts(self) -> bool:
        """Whether stages of a trip cost something by the time they take."""
        return any(getattr(self, stage) for stage in STAGES)


class SpendingLimits(Options):
    """What a run may spend: no further round begins when so much of one of these was spent."""

    energy: Annotated[Amount, Field(gt=0)] | None = None
    """Energy of the devices: `5 kWh`."""
    carbon: Annotated[Mass, Field(gt=0)] | None = None
    """What that energy emits: `1.5 kg`."""
    traffic: Annotated[Size, Field(gt=0)] | None = None
    """Bytes to devices and back: `20 GB`."""

    @model_validator(mode="after")
    def _check_any_limit(self) -> SpendingLimits:
        if self.energy is None and self.carbon is None and self.traffic is None:
            raise ValueError("nothing is limited (accepted: energy, carbon, traffic)")
        return self

    def problem(self, groups: list[Consumption | None]) -> str:
        """Say what is limited and never counted, if anything."""
        counted = [group for group in groups if group is not None]
        if self.energy is not None and not counted:
            return "energy: no population group says what its devices consume (accepted: population.*.energy)"
        if self.carbon is not None and not any(group.carbon for group in counted):
            return "carbon: no population group's electricity emits any (accepted: population.*.energy.carbon above 0)"
        return ""
