"""The devices of a scenario in columns: one row per client, in the order of the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedactors.clock import ontime
from fedactors.clock.absence import stay_by_absence, without_those_gone_before
from fedactors.clock.availability import ALWAYS, Availability, Int64, RecordingColumns, from_first_sight, join
from fedactors.clock.behaviours.making import BehavingGroup, behaving_groups
from fedactors.clock.devices import GroupSetting, Hardware, assigned, entity, hardware
from fedactors.clock.flow import CONSTANT, Flow, FlowColumns
from fedactors.clock.laws import law
from fedactors.clock.presence import Stay
from fedactors.clock.recording_paths import locate
from fedactors.clock.synthetic_availability import affordable, windows
from fedactors.durations import DAY
from fedactors.errors import ScenarioError, TraceError
from fedactors.plan import NEVER, SECOND, Time
from fedactors.scenario.local_options import LocalOptions
from fedactors.scenario.model import Scenario
from fedactors.scenario.population import GroupOptions
from fedactors.scenario.process_behaviour import ProcessBehaviour
from fedactors.scenario.sampled_participation import SampledParticipation
from fedactors.scenario.synthetic_behaviour import SyntheticBehaviour
from fedactors.scenario.trace_options import Always, Trace
from fedactors.streams import Purpose, stream
from fedactors.traces.describe import shown_time
from fedactors.traces.format_registry import read
from fedactors.traces.series import FULL_SHARE
from fedactors.traces.timeline import Timeline

Law = tuple[str, int]  # (trace of Table 2, levels)
MOST_WINDOWS_PER_SECOND = 100  # of one device whose recording repeats
_FINEST = 1000  # levels of a sampled trace that is counted in steps


@dataclass(frozen=True)
class Flows:
    """What varies over time, of every device."""

    on: Flow  # 1 always: latency takes time, not bytes
    share: Flow  # of the processor, ppm
    down: Flow  # bytes/s
    up: Flow  # bytes/s
    varying: NDArray[np.bool_]  # (N,): whether any of them varies


@dataclass(frozen=True)
class Population:
    """Every device, in columns of length N. Where `flows` vary, a rate here is the best that the device ever has."""

    availability: Availability
    per_sample: Int64  # ns per sample, forward and backward
    down: Int64  # bytes/s
    up: Int64  # bytes/s
    latency: Int64  # ns, added to every download and every upload
    deadline_aware: NDArray[np.bool_]  # stops in time for the deadline
    abort: NDArray[np.bool_]  # loses its work when interrupted
    arrive: Int64  # ns; 0 for devices that are there from the start
    depart: Int64  # ns; NEVER for devices that stay
    hands_in: NDArray[np.bool_]  # hands in the steps it has done before it departs
    flows: Flows | None = None
    laws: Sequence[Law | None] = ()  # of devices whose participation is sampled; empty if of none
    behaving: Sequence[BehavingGroup] = ()  # groups whose availability is a process

    def __len__(self) -> int:
        return len(self.per_sample)

    def scaled_by(self, effort: float) -> Population:
        """Return devices that take `effort` times as long for a sample."""
        if effort == 1.0:
            return self
        slower = np.minimum(np.ceil(self.per_sample * effort), NEVER // 4)  # at most what `training_time` gives
        return replace(self, per_sample=slower.astype(np.int64))

    def ever_available(self) -> bool:
        """Whether any device is on at some time between its arrival and its departure."""
        a = self.availability
        devices = np.arange(len(self))
        begun = ontime.elapsed(a, devices, np.maximum(self.arrive, 0))
        return bool((ontime.reach(a, devices, begun + 1) - 1 < np.minimum(self.depart, NEVER - 1)).any())


@dataclass(frozen=True)
class _Presence:
    """Availability of one group: its own table of windows, and each device's place in it."""

    windows: RecordingColumns
    row: Int64
    shift: Int64
    period: Int64
    arrive: Int64
    depart: Int64


def build(scenario: Scenario, flops: int, seconds: float | None = None) -> Population:
    """Return the population of `scenario`, whose model takes `flops` operations to train a sample; reads its traces.

    What a group draws depends on the seed and the group's name only, and adding devices at its end leaves the others
    as they were. Windows of a law that take longer than `seconds` to draw are drawn for less virtual time.
    Raises TraceError if a trace cannot be read.
    """
    groups = scenario.population
    behaving = behaving_groups(scenario)
    setting = GroupSetting(scenario.seed, scenario.folder, flops, seconds and seconds / len(groups))
    present = [_within_stay(_availability(group, setting), group) for group in groups]
    laws = _laws(scenario)
    machines = [hardware(group, setting) for group in groups]
    return Population(
        _joined(present),
        *_machine_columns(machines),
        deadline_aware=np.concatenate([np.full(g.count, g.deadline_aware) for g in groups]),
        abort=np.concatenate([np.full(g.count, g.on_interruption == "abort") for g in groups]),
        arrive=_arrivals(present, behaving),
        depart=np.concatenate([p.depart for p in present]),
        hands_in=np.concatenate([np.full(g.count, g.on_departure == "kept") for g in groups]),
        flows=_flows(machines, laws),
        laws=laws,
        behaving=behaving,
    )


def _joined(present: Sequence[_Presence]) -> Availability:
    """Return the availability of all groups, one after the other."""
    base = np.cumsum([0, *(len(p.windows.counts) for p in present)])
    rows = [np.where(p.row < 0, ALWAYS, p.row + offset) for p, offset in zip(present, base, strict=False)]
    return Availability(
        join([p.windows for p in present]),
        np.concatenate(rows),
        np.concatenate([p.shift for p in present]),
        np.concatenate([p.period for p in present]),
    )


def _machine_columns(machines: Sequence[Hardware]) -> tuple[Int64, Int64, Int64, Int64]:
    """Return ns per sample, bytes/s down, bytes/s up, and latency of each device."""
    return (
        np.concatenate([machine.per_sample for machine in machines]),
        np.concatenate([machine.down for machine in machines]),
        np.concatenate([machine.up for machine in machines]),
        np.concatenate([machine.latency for machine in machines]),
    )


def _arrivals(present: Sequence[_Presence], behaving: Sequence[BehavingGroup]) -> Int64:
    """Return when each device joins; NEVER where its behaviour says when."""
    arrive = np.concatenate([p.arrive for p in present])
    for group in behaving:
        if group.arrives:
            arrive[group.first : group.first + group.count] = NEVER
    return arrive


def _within_stay(present: _Presence, group: GroupOptions) -> _Presence:
    """Return the presence of a group, from the later arrival to the earlier departure of recording and scenario."""
    stay = Stay(np.maximum(present.arrive, group.arrive), np.minimum(present.depart, _leaves(group)))
    if group.departs_after is None:
        stay = without_those_gone_before(stay)
    else:
        availability = Availability(present.windows, present.row, present.shift, present.period)
        stay = stay_by_absence(availability, stay, group.departs_after)
    return replace(present, arrive=stay.arrive, depart=stay.depart)


def _leaves(group: GroupOptions) -> Time:
    """Return when a group leaves by the scenario; NEVER if it does not say."""
    return NEVER if group.depart is None else group.depart


def _flows(machines: list[Hardware], laws: list[Law | None]) -> Flows | None:
    """Return what varies over time, sampled devices among it; None if nothing does."""
    varying = np.concatenate([np.any([share.row >= 0 for share in m.flows.values()], axis=0) for m in machines])
    if laws:
        varying |= np.array([found is not None for found in laws])
    if not varying.any():
        return None
    zeros = np.zeros(len(varying), np.int64)
    return Flows(
        on=Flow([FlowColumns(None, zeros + CONSTANT, zeros, True, zeros + 1)]),
        share=Flow([machine.flows["share"] for machine in machines]),
        down=Flow([machine.flows["down"] for machine in machines]),
        up=Flow([machine.flows["up"] for machine in machines]),
        varying=varying,
    )


def constant_flows(population: Population) -> Flows:
    """Return the flows of devices that do not vary."""
    zeros = np.zeros(len(population), np.int64)
    on, share, down, up = (
        Flow([FlowColumns(None, zeros + CONSTANT, zeros, True, column)])
        for column in (zeros + 1, zeros + FULL_SHARE, population.down, population.up)
    )
    return Flows(on, share, down, up, varying=np.zeros(len(population), bool))


def _laws(scenario: Scenario) -> list[Law | None]:
    """Return (trace, levels) of each device that is sampled; nothing if none is. Raises ScenarioError."""
    laws = [one for number in range(len(scenario.population)) for one in _laws_of_group(scenario, number)]
    return laws if any(laws) else []


def _laws_of_group(scenario: Scenario, number: int) -> Sequence[Law | None]:
    """Return (trace, levels) of each device of a group. Raises ScenarioError."""
    group = scenario.population[number]
    wanted = group.sampled
    if wanted is None:
        return [None] * group.count
    if scenario.server.deadline is None or not group.deadline_aware:
        problem = "sampled participation needs server.deadline and deadline_aware: true"
        raise ScenarioError(f"population.{number}.sampled: {problem}")
    levels = _levels(wanted, scenario.local_of(number))
    found = [(trace, levels) for trace in wanted.traces]
    try:
        for trace, _ in found:
            law(trace, levels)
    except ScenarioError as error:
        raise ScenarioError(f"population.{number}.sampled: {error}") from None
    return [found[k] for k in assigned(wanted.assign, len(found), group, scenario.seed, 6).tolist()]


def _levels(wanted: SampledParticipation, local: LocalOptions) -> int:
    """Return in how many levels a sampled device's share of its work is counted: its epochs, or else its steps."""
    return wanted.levels or local.epochs or min(local.steps or 1, _FINEST)


def _availability(group: GroupOptions, setting: GroupSetting) -> _Presence:
    """Return the windows of a group: all of its availability, or the ones that its behaviour stays within."""
    zeros = np.zeros(group.count, np.int64)
    wanted = group.availability.within if isinstance(group.availability, ProcessBehaviour) else group.availability
    if isinstance(wanted, Always):
        return _Presence(join([]), zeros + ALWAYS, zeros, zeros, zeros, zeros + NEVER)
    if isinstance(wanted, SyntheticBehaviour):
        stretch = affordable(wanted, group.count, setting.seconds)
        made = windows(wanted, group.count, setting.seed, entity(group), stretch)
        row = np.arange(group.count, dtype=np.int64)
        period = zeros + stretch.end
        return _Presence(made, row, zeros, period, zeros, zeros + NEVER)
    path = locate(wanted.path, setting.folder)
    timeline = read(path, format=wanted.format, when=wanted.when, strict=wanted.strict)
    if not len(timeline):
        raise TraceError(f"{path}: holds no device")
    row = assigned(wanted.assign, len(timeline), group, setting.seed, 0)
    found = _follow(wanted, timeline, row, setting.seed, entity(group))
    _check_density(found, timeline, path)
    return found


def _check_density(found: _Presence, timeline: Timeline, path: Path) -> None:
    """Refuse windows that repeat more often than anything does that was recorded; their unit is wrong, most likely."""
    windows = np.diff(timeline.starts)[found.row]
    dense = np.flatnonzero((found.period > 0) & (windows * (SECOND // MOST_WINDOWS_PER_SECOND) > found.period))
    if len(dense):
        k = int(dense[0])
        repeats = f"{windows[k]:,} windows that repeat every {shown_time(int(found.period[k]))}"
        accepted = (
            f"up to {MOST_WINDOWS_PER_SECOND} windows in a second of virtual time; is the unit of its times right?"
        )
        raise TraceError(f'{path}: device "{timeline.names[int(found.row[k])]}": {repeats} (accepted: {accepted})')


def _follow(trace: Trace, timeline: Timeline, row: Int64, seed: int, entity: int) -> _Presence:
    """Place each device in its recording, whose windows count from its first sight."""
    windows = from_first_sight(timeline)
    span = np.maximum(timeline.last - timeline.first, 1)[row]
    begin = timeline.first[row] - _beginning(trace, timeline) if trace.offset == "none" else np.zeros_like(row)
    if trace.at_end == "depart":
        arrive = np.maximum(begin, 0)
        depart = np.maximum(begin + span, 0)
        return _Presence(windows, row, -begin, np.zeros_like(row), arrive, depart)
    period = -(-span // DAY) * DAY if trace.at_end == "loop_days" else span
    shift = -begin % period
    if trace.offset == "random":
        shift = (stream(seed, Purpose.OFFSET, entity).random(len(row)) * period).astype(np.int64) % period
    stay = np.zeros_like(row)
    return _Presence(windows, row, shift, period, stay, stay + NEVER)


def _beginning(trace: Trace, timeline: Timeline) -> Time:
    """Return which instant of the recording is time 0 of the run."""
    return int(timeline.first.min()) if trace.begin == "first" else trace.begin
