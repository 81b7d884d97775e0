"""What a run turns out to be that is easily missed, once its data and how much virtual time it takes are known."""

from __future__ import annotations

import numpy as np

from fedactors.clock import ontime
from fedactors.clock.availability import Int64
from fedactors.clock.device_columns import Population
from fedactors.plan import SECOND, Time
from fedactors.report.terminal_text import span
from fedactors.scenario.trace_options import Trace
from fedactors.simulation.checks.tested_clients import remarks_on_test_clients
from fedactors.simulation.prepared import Prepared

_FEW = 0.1  # of the devices of a group: fewer that come or go are hardly any
_SHORT = 0.1  # of what the recordings of a group span
_DAY = 86_400 * SECOND


def remarks(prepared: Prepared, virtual_seconds: float) -> list[str]:
    """Return sentences about a run of so many virtual seconds."""
    end = round(virtual_seconds * SECOND)
    found = remarks_on_test_clients(prepared)
    first = 0
    for group in prepared.scenario.population:
        devices = np.arange(first, first + group.count)
        first += group.count
        if isinstance(group.availability, Trace) and end > 0:
            found += _little_change(prepared.population, devices, group.name, end)
            found += _shifted_days(
                group.availability, prepared.population.availability.period[devices], group.name, end
            )
    return found


def _shifted_days(trace: Trace, period: Int64, name: str, end: Time) -> list[str]:
    """Return a sentence if recordings of a group begin again within a run, at another time of day than they began."""
    shifted = (period > _DAY) & (period % _DAY > 0) & (period < end)
    if trace.at_end != "loop" or trace.offset != "none" or not shifted.any():
        return []
    some = f"{np.count_nonzero(shifted):,} of {len(period):,} devices"
    first = span(int(period[shifted].min()) / SECOND)
    return [
        f'population "{name}": recordings of {some} begin again after no whole number of days (the first after {first})'
        ", so that times of day shift (at_end: loop_days keeps them)"
    ]


def _little_change(people: Population, devices: Int64, name: str, end: Time) -> list[str]:
    """Return a sentence if a run is much shorter than the recordings of a group, and hardly a device comes or goes."""
    windows = people.availability
    arrive = people.arrive[devices]
    depart = people.depart[devices]
    period = windows.period[devices]
    whole = float(np.median(np.where(period > 0, period, depart - arrive)))
    if end > _SHORT * whole:
        return []
    before, after = (ontime.elapsed(windows, devices, np.full(len(devices), at, np.int64)) for at in (0, end))
    stays = (arrive <= 0) & (depart > end)
    on = int(np.count_nonzero(stays & (after - before == end)))
    off = int(np.count_nonzero(stays & (after == before)))
    moving = len(devices) - on - off
    if moving > _FEW * len(devices):
        return []
    seen = f"in {span(end / SECOND)} of virtual time {on:,} devices are on and {off:,} off throughout"
    spanned = f"their recordings span {span(whole / SECOND)}"
    return [f'population "{name}": {seen}, {moving:,} come or go; {spanned} (more or longer rounds show more of them)']
