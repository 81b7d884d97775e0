"""The devices of a scenario in columns: one row per client, in the order of the groups."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.availability import ALWAYS, Availability, Int64, Windows, join
from fedactors.errors import TraceError
from fedactors.plan import NEVER, SECOND
from fedactors.scenario.model import Scenario
from fedactors.scenario.population import Group, Trace
from fedactors.streams import Purpose, stream
from fedactors.traces.formats import read
from fedactors.traces.timeline import Timeline

_DAY = 86_400 * SECOND


@dataclass(frozen=True)
class Population:
    """Every device, in columns of length N."""

    availability: Availability
    per_sample: Int64  # ns per sample, forward and backward
    down: Int64  # bytes/s
    up: Int64  # bytes/s
    latency: Int64  # ns, added to every download and every upload
    aware: NDArray[np.bool_]  # stops in time for the deadline
    abort: NDArray[np.bool_]  # loses its work when interrupted
    arrive: Int64  # ns; 0 for devices that are there from the start
    depart: Int64  # ns; NEVER for devices that stay

    def __len__(self) -> int:
        return len(self.per_sample)


@dataclass(frozen=True)
class _Presence:
    """Availability of one group: its own table of windows, and each device's place in it."""

    windows: Windows
    row: Int64
    shift: Int64
    period: Int64
    arrive: Int64
    depart: Int64


def build(scenario: Scenario) -> Population:
    """Return the population of `scenario`; reads its traces. Raises TraceError if one cannot be read.

    What a group draws depends on the seed and the group's name only, and adding devices at its end leaves the others
    as they were.
    """
    groups = scenario.population
    present = [_availability(group, scenario) for group in groups]
    base = np.cumsum([0, *(len(p.windows.counts) for p in present)])
    rows = [np.where(p.row < 0, ALWAYS, p.row + offset) for p, offset in zip(present, base, strict=False)]
    availability = Availability(
        join([p.windows for p in present]),
        np.concatenate(rows),
        np.concatenate([p.shift for p in present]),
        np.concatenate([p.period for p in present]),
    )
    return Population(
        availability,
        per_sample=_column(
            groups, lambda g: _spread(scenario, g, Purpose.SPEED, 0, g.compute.per_sample, g.compute.spread)
        ),
        down=_column(groups, lambda g: _spread(scenario, g, Purpose.LINK, 0, g.network.down, g.network.spread)),
        up=_column(groups, lambda g: _spread(scenario, g, Purpose.LINK, 1, g.network.up, g.network.spread)),
        latency=_column(groups, lambda g: np.full(g.count, g.network.latency, np.int64)),
        aware=np.concatenate([np.full(g.count, g.deadline_aware) for g in groups]),
        abort=np.concatenate([np.full(g.count, g.on_interruption == "abort") for g in groups]),
        arrive=np.concatenate([p.arrive for p in present]),
        depart=np.concatenate([p.depart for p in present]),
    )


def _column(groups: list[Group], of: Callable[[Group], Int64]) -> Int64:
    return np.concatenate([of(group) for group in groups])


def _entity(group: Group) -> int:
    """Return a number for a group that does not depend on its place in the list."""
    return zlib.crc32(group.name.encode())


def _spread(scenario: Scenario, group: Group, purpose: Purpose, which: int, median: int, spread: float) -> Int64:
    """Draw a lognormal value per device of `group` around `median`; at least 1."""
    if spread == 0.0:
        return np.full(group.count, median, np.int64)
    draws = stream(scenario.seed, purpose, _entity(group), which).standard_normal(group.count)
    values: Int64 = np.maximum(1, np.rint(median * np.exp(spread * draws))).astype(np.int64)
    return values


def _availability(group: Group, scenario: Scenario) -> _Presence:
    zeros = np.zeros(group.count, np.int64)
    if not isinstance(group.availability, Trace):
        return _Presence(join([]), zeros + ALWAYS, zeros, zeros, zeros, zeros + NEVER)
    trace = group.availability
    path = locate(trace.path, scenario.folder)
    timeline = read(path, format=trace.format, when=trace.when, strict=trace.strict)
    if not len(timeline):
        raise TraceError(f"{path}: holds no device")
    row = np.arange(group.count) % len(timeline)
    if trace.assign == "shuffle":
        row = stream(scenario.seed, Purpose.TRACE, _entity(group)).integers(len(timeline), size=group.count)
    return _follow(trace, timeline, row, scenario.seed, _entity(group))


def _follow(trace: Trace, timeline: Timeline, row: Int64, seed: int, entity: int) -> _Presence:
    """Place each device in its recording, whose windows count from its first sight."""
    counts = np.diff(timeline.starts)
    first = np.repeat(timeline.first, counts)
    windows = Windows(timeline.starts, timeline.on - first, timeline.off - first)
    span = np.maximum(timeline.last - timeline.first, 1)[row]
    begin = timeline.first[row] if trace.offset == "none" else np.zeros_like(row)
    if trace.at_end == "depart":
        return _Presence(windows, row, -begin, np.zeros_like(row), begin, begin + span)
    period = -(-span // _DAY) * _DAY if trace.at_end == "loop_days" else span
    shift = -begin % period
    if trace.offset == "random":
        shift = (stream(seed, Purpose.OFFSET, entity).random(len(row)) * period).astype(np.int64) % period
    stay = np.zeros_like(row)
    return _Presence(windows, row, shift, period, stay, stay + NEVER)


def locate(path: str, folder: Path) -> Path:
    """Return the file a scenario means: relative to its own folder, else to the folder FEDACTORS_TRACES names.

    Raises TraceError if it is in neither.
    """
    places = [folder / path]
    if root := os.environ.get("FEDACTORS_TRACES"):
        places.append(Path(root) / path)
    for place in places:
        if place.exists():
            return place
    looked = " or ".join(str(place) for place in places)
    hint = "" if root else " (the environment variable FEDACTORS_TRACES can name the folder of your traces)"
    raise TraceError(f"no trace at {looked}{hint}")
