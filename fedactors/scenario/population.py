"""The devices: groups with a count, and when each device is on, how fast it computes and how it communicates."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from fedactors.options import Options
from fedactors.paths import PathText
from fedactors.scenario.local_options import GroupLocal
from fedactors.scenario.recordings import DeviceRecording, Links, Places, RateRecording
from fedactors.scenario.sampled_participation import Laws, SampledParticipation, short
from fedactors.scenario.synthetic_behaviour import SyntheticBehaviour
from fedactors.scenario.units import Duration, Energy, Rate, Speed


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


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
    def _departures_have_one_beginning(self) -> Trace:
        if self.at_end == "depart" and self.offset == "random":
            raise ValueError("offset: random needs a recording that loops (at_end: loop or loop_days)")
        if self.begin and self.offset != "none":
            raise ValueError("begin is for devices at the recording's own time (offset: none)")
        return self


class Compute(Options):
    """How fast a device trains."""

    per_sample: Duration | None = None
    """Time of one forward and backward pass over one sample: the group's median."""
    flops: Speed | None = None
    """Instead: operations per second; the time follows from what the model's passes need."""
    table: DeviceRecording | None = None
    """Instead: measured speeds of real devices."""
    share: RateRecording | None = None
    """Which part of the processor is free, over time."""
    spread: float = Field(default=0.0, ge=0.0, le=5.0)
    """Standard deviation of the logarithm over the group; 0 makes all devices equal."""

    @model_validator(mode="after")
    def _takes_time(self) -> Compute:
        if self.per_sample == 0:
            raise ValueError("per_sample must be longer than 0")
        if sum(given is not None for given in (self.per_sample, self.flops, self.table)) != 1:
            raise ValueError("give one of per_sample, flops and table")
        return self


class Network(Options):
    """A device's link to the server."""

    down: Rate = 2_000_000
    """Median download rate."""
    up: Rate = 500_000
    """Median upload rate."""
    latency: Duration = 0
    """Added once to every download and every upload."""
    table: DeviceRecording | None = None
    """Measured rates of real devices, in place of `down` and `up`."""
    trace: Links | None = None
    """Rates over time, in place of constant ones."""
    places: Places | None = None
    """Latencies between places, in place of `latency`."""
    spread: float = Field(default=0.0, ge=0.0, le=5.0)
    """Standard deviation of the logarithm of both rates over the group."""


Availability = Annotated[
    Always | Trace | SyntheticBehaviour,
    Field(discriminator="name"),
    BeforeValidator(
        _named, json_schema_input_type=Literal["always", "synthetic"] | Always | Trace | SyntheticBehaviour
    ),
]


class Consumption(Options):
    """What a device's battery pays."""

    per_step: Energy = 0
    """For a local step, whether or not the server gets to see it."""
    per_byte: Energy = 0
    """For a byte that crosses its link, down or up."""


class GroupOptions(Options):
    """Devices of one kind."""

    name: str = Field(min_length=1, max_length=100)
    count: int = Field(ge=1, le=100_000_000)
    availability: Availability = Always()
    compute: Compute = Compute.model_validate({"per_sample": "10ms"})
    network: Network = Network.model_validate({"down": "2 MB/s", "up": "500 kB/s", "latency": "50ms"})
    sampled: Annotated[
        SampledParticipation | None, BeforeValidator(short, json_schema_input_type=Laws | SampledParticipation | None)
    ] = None
    """Participation drawn from a law instead of emerging: `T30`, or `[T0, T30, T50]`; needs a deadline."""
    energy: Consumption | None = None
    """What steps and bytes cost in joules; where no group says so, none are counted."""
    local: GroupLocal | None = None
    """What its devices do in a trip, in place of what `server.local` says: `batch`, and `epochs` or `steps`."""
    deadline_aware: bool = True
    """Whether a device stops at the last step from which its upload still arrives; a naive one works on."""
    on_interruption: Literal["pause", "abort"] = "pause"
    """When its window ends in the middle: go on in the next window, or lose the round's work."""
    arrive: Duration = 0
    """When its devices join, counted from the beginning of the run; a recording may let them join later still."""
    depart: Duration | None = None
    """When its devices leave for good; a recording may let them leave earlier."""
    on_departure: Literal["lost", "kept"] = "lost"
    """What becomes of work in flight then: it is lost, or the device stops in time to hand in the steps it has done."""

    @model_validator(mode="after")
    def _leaves_after_it_came(self) -> GroupOptions:
        if self.depart is not None and self.depart <= self.arrive:
            raise ValueError("depart must be later than arrive")
        return self
