"""When devices are on by a recording, or always."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from fedactors.options import Options
from fedactors.paths import PathText
from fedactors.scenario.units import Duration


class Always(Options):
    """On from the first to the last nanosecond."""

    name: Literal["always"] = "always"


class Trace(Options):
    """Windows recorded on real devices; see docs/traces.md for the formats."""

    name: Literal["trace"] = "trace"
    path: PathText
    """File, relative to the scenario's folder or else to the folder that FEDACTORS_TRACES names."""
    format: str | None = None
    """Name of the format; found out by looking at the file when absent."""
    when: str | None = None
    """What counts as available, for event recordings: `charging & wifi & locked`."""
    assign: Literal["in_order", "shuffle"] = "in_order"
    """Which recording drives which device: the k-th (again from the first when they run out), or one by lot."""
    begin: Duration | Literal["first"] = 0
    """Which instant of the recording is the run's beginning: `9h` after its epoch, or its earliest first sight."""
    offset: Literal["none", "start", "random"] = "none"
    """Where a device begins in its recording: at the recording's own time, at its first sight, or anywhere."""
    at_end: Literal["loop", "loop_days", "depart"] = "loop"
    """What follows the last sight: again from the first, the same after filling up the last day, or departure."""
    strict: bool = False
    """Refuse recordings that need repair."""

    @model_validator(mode="after")
    def _check_offset(self) -> Trace:
        if self.at_end == "depart" and self.offset == "random":
            raise ValueError("offset: random needs a recording that loops (at_end: loop or loop_days)")
        if self.begin and self.offset != "none":
            raise ValueError("begin is for devices at the recording's own time (offset: none)")
        return self
