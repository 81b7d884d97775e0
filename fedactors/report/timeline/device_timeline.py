"""The timeline of a run: its devices, trips and windows as packed columns that the script of the page draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.report.figure import Chart
from fedactors.report.measures import HEARD_NAMES, Floats, Ints, outcomes_per_round
from fedactors.report.palette import OUTCOME, label
from fedactors.report.timeline import presence_bands
from fedactors.report.timeline.device_choice import DeviceRows, choose
from fedactors.report.timeline.packed_columns import packed
from fedactors.report.timeline.presence_bands import WindowTable
from fedactors.run_files.client_table import joules_of_clients
from fedactors.run_files.records import OUTCOMES, Records

BYTES = 2_200_000  # of trips, as text
_WINDOWS = 150_000  # drawn at most
_ROUNDS_AT_FIRST = 12
_TRIPS_AT_FIRST = 5  # of a device
_BINS = 300  # of the strip below
_FINE = 400  # units of time in a median trip
_MS = 1_000_000  # ns
_DIGITS = 6  # of the highest energy of a device

_TIMES = ("started", "downloaded", "computed", "finished")


def timeline(records: Records) -> Chart | None:
    """Return the timeline, with a strip of all rounds that moves and stretches its window; none without orders."""
    if not len(records.orders["client"]):
        return None
    rows = choose(records)
    unit = _unit(records)
    trips, drawn, of = _within(records, rows.devices, unit)
    missing = records.orders["started"][np.isin(records.orders["client"], rows.devices)][drawn:]
    windows = presence_bands.read(records.path)
    bands = None if windows is None else _windows(windows, rows.devices, unit)
    people = _devices(records, rows)
    energy = _energy(records, rows)
    data = {
        "unit": unit / _MS,
        "joules": 0.0 if energy is None else energy.unit,
        "end": int(records.orders["finished"].max()) // unit + 1,
        "until": int(missing.min()) // unit if len(missing) else None,
        "first": _first_window(records) // unit,
        "groups": [group.name for group in records.groups],
        "outcomes": [{"name": label(name), "color": OUTCOME[name]} for name in OUTCOMES],
        "heard": [OUTCOMES.index(name) for name in HEARD_NAMES],
        "devices": packed(people if energy is None else {**people, "energy": energy.of}),
        "trips": trips,
        "windows": None if bands is None else packed(bands),
        "strip": _strip(records, unit),
    }
    said = f"Timeline of {len(rows.devices):,} devices and {drawn:,} trips, coloured by outcome."
    text = _text(rows, with_bands=bands is not None)
    return Chart("timeline", "Device by device", text, None, said, _note(rows, drawn, of, bands), data)


def _text(rows: DeviceRows, *, with_bands: bool) -> str:
    """Return how the timeline is read."""
    text = f"{'' if rows.note else 'All '}{len(rows.devices):,} devices"
    text += ", by scrolling and by search. Thick bars compute; thin ones before and after are download and upload."
    return text + (" Bands tell when a device is on; hatched: its trip pauses." if with_bands else "")


def _note(rows: DeviceRows, drawn: int, of: int, bands: Mapping[str, NDArray[Any]] | None) -> str:
    """Return what is left out."""
    notes = [rows.note] if rows.note else []
    if drawn < of:
        notes.append(f"Their first {drawn:,} of {of:,} trips are drawn; counts are of all.")
    unknown = 0 if bands is None else int((bands["windows"] < 0).sum())
    if unknown:
        notes.append(f"Of {unknown:,} of them the folder does not say when they were on: they have no bands.")
    return " ".join(notes)


def _unit(records: Records) -> int:
    """Return the unit of time of the columns, ns: a small part of a trip, at least a millisecond, 31 bits in all."""
    orders = records.orders
    usual = int(np.median(orders["finished"] - orders["started"]))
    end = max(int(orders["finished"].max()), int(records.plans["ready"].max(initial=0)))
    return max(_MS, usual // _FINE, end // 2**31 + 1)


def _first_window(records: Records) -> int:
    """Return the nanoseconds that are in view at first: rounds in which a device has some trips."""
    end = int(records.orders["finished"].max())
    closed = records.plans["ready"]
    often = len(records.orders["client"]) / max(1, records.devices)  # trips of a device, in all rounds
    rounds = max(_ROUNDS_AT_FIRST, int(_TRIPS_AT_FIRST / often * len(closed)))
    return min(int(closed[rounds - 1]), end) if len(closed) > rounds else end


def _devices(records: Records, rows: DeviceRows) -> dict[str, NDArray[Any]]:
    edges = np.cumsum([group.count for group in records.groups], dtype=np.int64)
    happened = {f"outcome{code}": rows.counts[:, code] for code in range(len(OUTCOMES)) if rows.counts[:, code].any()}
    return {
        "device": np.diff(rows.devices, prepend=0),
        "group": np.searchsorted(edges, rows.devices, side="right"),
        "steps": rows.steps,
        **happened,
    }


class _Energy(NamedTuple):
    """What devices have consumed, in whole units of so many joules, `(devices,)`."""

    of: Ints
    unit: float


def _energy(records: Records, rows: DeviceRows) -> _Energy | None:
    """Return what the devices of the rows have consumed; None where that was not counted, or is nothing."""
    joules = joules_of_clients(records.path, records.devices)
    if joules is None or not joules[rows.devices].any():
        return None
    unit = float(10.0 ** np.ceil(np.log10(np.abs(joules[rows.devices]).max()) - _DIGITS))
    return _Energy(np.rint(joules[rows.devices] / unit).astype(np.int64), unit)


def _within(records: Records, devices: Ints, unit: int) -> tuple[dict[str, Any], int, int]:
    """Return the trips of `devices`, or of the first rounds if all are too many bytes; how many; and of how many."""
    mine = np.flatnonzero(np.isin(records.orders["client"], devices))
    taken = mine
    while True:
        found = packed(_trips(records, taken, devices, unit))
        if len(found["blob"]) <= BYTES:
            return found, len(taken), len(mine)
        taken = taken[: int(0.95 * len(taken) * BYTES / len(found["blob"]))]


def _trips(records: Records, taken: Ints, devices: Ints, unit: int) -> dict[str, NDArray[Any]]:
    """Return the columns of trips, device by device and in order of their beginnings.

    `version` counts from the trip before of the same device, `begin` from the opening of the version's round, and the
    three stages from one another, since small numbers are packed best.
    """
    chosen = {name: column[taken] for name, column in records.orders.items()}
    order = np.lexsort((chosen["started"], chosen["client"]))
    chosen = {name: column[order] for name, column in chosen.items()}
    counts = np.bincount(np.searchsorted(devices, chosen["client"]), minlength=len(devices))
    first = np.concatenate([[True], np.diff(chosen["client"]) > 0])
    version = chosen["version"]
    started, downloaded, computed, finished = (chosen[name] // unit for name in _TIMES)
    opened = _opened(records, unit)[: int(version.max(initial=-1)) + 1]  # of a long run, all would not fit
    return {
        "opened": np.diff(opened, prepend=0),
        "trips": counts,
        "version": np.where(first, version, np.diff(version, prepend=0)),
        "begin": started - opened[version],
        "download": downloaded - started,
        "compute": computed - downloaded,
        "upload": finished - computed,
        "outcome": chosen["outcome"],
        "steps": chosen["steps"],
        "wanted": chosen["wanted"],
    }


def _opened(records: Records, unit: int) -> Ints:
    """Return when the round of each version was opened, in units; 0 where that was not recorded."""
    count = int(records.orders["version"].max()) + 1
    opened = np.zeros(count, np.int64)
    known = records.plans["opened"][:count] // unit
    opened[: len(known)] = known
    return opened


def _windows(windows: WindowTable, devices: Ints, unit: int) -> dict[str, NDArray[Any]]:
    """Return when devices were on: of each how many windows, and the gap before each of them, and its length.

    A device of which nothing is known has -1 windows, and so has one whose windows are too many.
    """
    counts = np.full(len(devices), -1, np.int64)
    known = np.isin(devices, windows.known)
    counts[known] = 0
    mine = np.isin(windows.client, devices)
    place = np.searchsorted(devices, windows.client[mine])
    counts += np.bincount(place, minlength=len(devices))
    kept = np.cumsum(np.maximum(counts, 0)) <= _WINDOWS
    counts[~kept] = -1
    on, off = (column[mine][kept[place]] // unit for column in (windows.on, windows.off))
    place = place[kept[place]]
    first = np.concatenate([[True], np.diff(place) > 0])[: len(place)]
    before = np.where(first, 0, np.concatenate([[0], off])[: len(off)])
    return {"windows": counts, "gap": on - before, "length": off - on}


def _strip(records: Records, unit: int) -> dict[str, Any]:
    """Return the outcomes of all rounds in bins of time: the ends of the bins, in units, and counts by outcome."""
    x, width, counts = outcomes_per_round(records, _BINS)
    ends = _ready(records, x + width / 2 - 0.5) * 1e9 / unit
    shown = {OUTCOMES.index(name): np.round(values, 2).tolist() for name, values in counts.items()}
    return {"ends": np.round(ends).astype(np.int64).tolist(), "counts": shown}


def _ready(records: Records, x: Floats) -> Floats:
    """Return the virtual seconds at which the rounds numbered `x` were over; 0 where no round is recorded."""
    if not records.rounds:
        return np.zeros(len(x))
    return np.interp(x, records.metrics["round"], records.metrics["virtual_seconds"])
