"""The devices: groups with a count, and when each device is on, how fast it computes and how it communicates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from fedactors.options import Options
from fedactors.scenario.costs.energy_options import Consumption
from fedactors.scenario.kinds import Attack
from fedactors.scenario.local_options import GroupLocal
from fedactors.scenario.process_behaviour import ProcessBehaviour, named
from fedactors.scenario.recordings import DeviceRecording, Links, Places, RateRecording
from fedactors.scenario.sampled_participation import Laws, SampledParticipation, short
from fedactors.scenario.synthetic_behaviour import SyntheticBehaviour
from fedactors.scenario.trace_options import Always, Trace
from fedactors.scenario.units import Duration, Rate, Speed


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
    def _check_speed(self) -> Compute:
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
    """Standard deviation of the logarithm of both rates over the group; not of those that a recording says."""

    @model_validator(mode="after")
    def _check_options_without_effect(self) -> Network:
        """Refuse what changes nothing, as recordings say all rates: it looks as if it did."""
        traced = self.trace is not None and self.trace.down is not None and self.trace.up is not None
        instead = "trace has both directions" if traced else "table has both rates" if self.table else ""
        if self.spread and instead:
            raise ValueError(f"spread changes nothing: {instead} (accepted: without spread)")
        if self.table and traced:
            raise ValueError(f"table changes nothing: {instead} (accepted: without table)")
        return self


Availability = Annotated[
    Always | Trace | SyntheticBehaviour | ProcessBehaviour,
    Field(discriminator="name"),
    BeforeValidator(
        named,
        json_schema_input_type=Literal["always", "synthetic"] | Always | Trace | SyntheticBehaviour | ProcessBehaviour,
    ),
]


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
    """What its devices consume, by steps and bytes or by the watts of each stage; where no group says so, none is
    counted."""
    edge: str | None = None
    """The edge that its devices report to, by its name in `timing: {name: hierarchical, edges: [...]}`."""
    local: GroupLocal | None = None
    """What its devices do in a trip, in place of what `server.local` says: `batch`, and `epochs` or `steps`."""
    attack: Attack | None = None
    """How its devices attack, if they do: `sign-flip`, `boost`, `random` or `label-flip`, with options."""
    deadline_aware: bool = True
    """Whether a device stops at the last step from which its upload still arrives; a naive one works on."""
    on_interruption: Literal["pause", "abort"] = "pause"
    """When its window ends in the middle: go on in the next window, or lose the round's work."""
    arrive: Duration = 0
    """When its devices join, counted from the beginning of the run; a recording may let them join later still."""
    depart: Duration | None = None
    """When its devices leave for good; a recording may let them leave earlier."""
    departs_after: Duration | None = None
    """How long a device may be off before it counts as gone for good: `3d`. It arrives when it is first on, and departs
    that long after it was last on, or at an earlier `depart` or end of its recording."""
    on_departure: Literal["lost", "kept"] = "lost"
    """What becomes of work in flight then: it is lost, or the device stops in time to hand in the steps it has done."""

    @model_validator(mode="after")
    def _check_depart_after_arrive(self) -> GroupOptions:
        if self.depart is not None and self.depart <= self.arrive:
            raise ValueError("depart must be later than arrive")
        return self

    @model_validator(mode="after")
    def _check_sampled_participation(self) -> GroupOptions:
        """Refuse what interrupts or slows the trips of sampled devices: shares would not be those of the law."""
        varying = {
            "availability": not isinstance(self.availability, Always),
            "compute.share": self.compute.share is not None,
            "network.trace": self.network.trace is not None,
        }
        found = " and ".join(name for name, given in varying.items() if given)
        if self.sampled is not None and found:
            raise ValueError(
                f"sampled draws what share of its work a device does, which {found} would change (accepted:"
                f" sampled without {found})"
            )
        return self

    @model_validator(mode="after")
    def _check_departs_after(self) -> GroupOptions:
        if self.departs_after == 0:
            raise ValueError("departs_after must be longer than 0")
        if self.departs_after is not None and isinstance(self.availability, ProcessBehaviour):
            raise ValueError(
                "departs_after is for windows that are known beforehand, and a process says itself when its device"
                " departs (accepted: availability trace, synthetic or always)"
            )
        return self
