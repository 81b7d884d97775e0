"""Who the devices are: groups with a count, and how each one computes, communicates and comes and goes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from fedactors.options import Options
from fedactors.scenario.units import Duration, Rate


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class Always(Options):
    """On from the first to the last nanosecond."""

    name: Literal["always"] = "always"


class Trace(Options):
    """Windows recorded on real devices; see docs/traces.md for the formats."""

    name: Literal["trace"] = "trace"
    path: str
    """File, relative to the scenario's folder or else to the folder that FEDACTORS_TRACES names."""
    format: str | None = None
    """Name of the format; found out by looking at the file when absent."""
    when: str | None = None
    """What counts as available, for event recordings: `charging & wifi & locked`."""
    assign: Literal["in_order", "shuffle"] = "in_order"
    """Which recording drives which device: the k-th (again from the first when they run out), or one by lot."""
    offset: Literal["none", "start", "random"] = "none"
    """Where a device begins in its recording: at the recording's own time, at its first sight, or anywhere."""
    at_end: Literal["loop", "loop_days", "depart"] = "loop"
    """What follows the last sight: again from the first, the same after filling up the last day, or departure."""
    strict: bool = False
    """Refuse recordings that need repair."""

    @model_validator(mode="after")
    def _departures_have_one_beginning(self) -> Trace:
        if self.at_end == "depart" and self.offset == "random":
            raise ValueError("offset: random needs a recording that loops (at_end: loop or loop_days)")
        return self


class Compute(Options):
    """How fast a device trains."""

    per_sample: Duration
    """Time of one forward and backward pass over one sample: the group's median."""
    spread: float = Field(default=0.0, ge=0.0, le=5.0)
    """Standard deviation of the logarithm over the group; 0 makes all devices equal."""

    @model_validator(mode="after")
    def _takes_time(self) -> Compute:
        if self.per_sample == 0:
            raise ValueError("per_sample must be longer than 0")
        return self


class Network(Options):
    """A device's link to the server."""

    down: Rate
    """Median download rate."""
    up: Rate
    """Median upload rate."""
    latency: Duration = 0
    """Added once to every download and every upload."""
    spread: float = Field(default=0.0, ge=0.0, le=5.0)
    """Standard deviation of the logarithm of both rates over the group."""


Availability = Annotated[Always | Trace, BeforeValidator(_named), Field(discriminator="name")]


class Group(Options):
    """Devices of one kind."""

    name: str = Field(min_length=1, max_length=100)
    count: int = Field(ge=1, le=100_000_000)
    availability: Availability = Always()
    compute: Compute = Compute.model_validate({"per_sample": "10ms"})
    network: Network = Network.model_validate({"down": "2 MB/s", "up": "500 kB/s", "latency": "50ms"})
    deadline_aware: bool = True
    """Whether a device stops at the last step from which its upload still arrives; a naive one works on."""
    on_interruption: Literal["pause", "abort"] = "pause"
    """When its window ends in the middle: go on in the next window, or lose the round's work."""
