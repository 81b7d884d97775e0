"""When devices were on, for the report: a sample of the population, and the devices that its timeline shows.

    windows.parquet  client, sampled (whether it is of the even sample), on and off: its windows, ns, at most 2,000

Nothing of a run depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from fedactors.clock.clock import Clock
from fedactors.plan import Time
from fedactors.report.measures import every
from fedactors.report.timeline.device_choice import choose
from fedactors.run_files.records import read
from fedactors.run_files.tables import write_table
from fedactors.simulation.prepared import Prepared

FILE = "windows.parquet"
_SAMPLE = 400  # devices
_WINDOWS = 2_000  # of one device
_IN_ALL = 150_000  # of all devices; those of the sample are written in any case


def write_windows(folder: Path, prepared: Prepared, clock: Clock) -> None:
    """Write windows.parquet beside the tables of a run or replay that has ended, of which `clock` is."""
    import pyarrow as pa

    records = read(folder)
    end = int(max(records.plans["ready"].max(initial=0), records.orders["finished"].max(initial=0)))
    sample = every(len(prepared.population), _SAMPLE)
    found = {client: list(islice(_spans(prepared, clock, client, end), _WINDOWS)) for client in sample.tolist()}
    shown = np.setdiff1d(choose(records).devices, sample)
    left = _IN_ALL - sum(map(len, found.values()))
    for client in shown.tolist():
        if left <= 0:
            break
        found[client] = list(islice(_spans(prepared, clock, client, end), _WINDOWS))
        left -= len(found[client])
    clients = sorted(found)
    spans = [found[client] for client in clients]
    table = pa.table({
        "client": pa.array(clients, pa.int64()),
        "sampled": pa.array(np.isin(clients, sample)),
        "on": pa.array([[on for on, _ in found] for found in spans], pa.list_(pa.int64())),
        "off": pa.array([[off for _, off in found] for found in spans], pa.list_(pa.int64())),
    })  # fmt: skip
    write_table(folder / FILE, table)


def _spans(prepared: Prepared, clock: Clock, client: int, end: Time) -> Iterator[tuple[Time, Time]]:
    """Yield when a device is on and belongs to the population, up to `end`."""
    people = prepared.population
    behaves = any(group.first <= client < group.first + group.count for group in people.behaving)
    first = 0 if behaves else int(people.arrive[client])
    last = min(int(people.depart[client]), end)
    for on, off in clock.spans(client, first):
        if on >= last:
            return
        yield on, min(off, last)
