"""Timelines for Perfetto (ui.perfetto.dev) and chrome://tracing: the virtual one of devices, the real one of actors.

Source: "Trace Event Format", Google. A device is a thread of the process "virtual time", its stages are slices; an
actor is a thread of the process "wall clock". Times are microseconds; virtual and real ones are unrelated.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedactors.report.measures import every
from fedactors.report.palette import label
from fedactors.run_files.records import OUTCOMES, Records, read
from fedactors.run_files.tables import rows_of
from fedactors.run_files.writing import replacing, writable

Event = dict[str, Any]

VIRTUAL, WALL = 1, 2  # processes
_SERVER = 0  # thread of the server; device d is thread d + 1
_STAGES = (
    ("download", "started", "downloaded"),
    ("compute", "downloaded", "computed"),
    ("upload", "computed", "finished"),
)
_US = 1_000  # ns


def write(folder: str | Path, out: str | Path, devices: int = 500) -> Path:
    """Write the timelines of a run folder to `out`, gzipped if it ends in .gz, and return its path.

    Of more than `devices` devices, so many are shown, evenly spread over those that were asked. Raises RunFolderError
    if `folder` is no run folder or is damaged, or if `out` cannot be written.
    """
    records = read(folder)
    path = Path(out)
    with writable(path), replacing(path) as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile(path.stem, "wb", fileobj=raw) as file:
                file.writelines(_document(records, devices))
        else:
            raw.writelines(_document(records, devices))
    return path


def _document(records: Records, devices: int) -> Iterator[bytes]:
    """Yield the pieces of the file."""
    yield b'{"displayTimeUnit": "ms", "traceEvents": [\n'
    for number, event in enumerate(events(records, devices)):
        yield ((",\n" if number else "") + json.dumps(event)).encode()
    yield b"\n]}\n"


def events(records: Records, devices: int) -> Iterator[Event]:
    """Yield every event of a run."""
    yield _name("process_name", VIRTUAL, 0, "virtual time")
    yield from _rounds(records)
    yield from _trips(records, devices)
    yield from _learned(records)
    yield from _wall(records.path / "wall.parquet")


def _rounds(records: Records) -> Iterator[Event]:
    yield _name("thread_name", VIRTUAL, _SERVER, "server")
    plans = {name: column.tolist() for name, column in records.plans.items()}
    for version, opened, closed, ready, asked, heard in zip(
        *(plans[key] for key in ("version", "opened", "closed", "ready", "asked", "heard")), strict=True
    ):
        yield _slice(VIRTUAL, _SERVER, f"round {version + 1}", opened, closed, {"asked": asked, "heard": heard})
        if ready > closed:
            yield _slice(VIRTUAL, _SERVER, "server work", closed, ready, {"round": version + 1})


def _trips(records: Records, devices: int) -> Iterator[Event]:
    asked = np.unique(records.orders["client"])
    shown = asked[every(len(asked), devices)]
    for client in shown.tolist():
        yield _name("thread_name", VIRTUAL, client + 1, f"{_group(records, client)} {client}")
    rows = np.flatnonzero(np.isin(records.orders["client"], shown))
    orders = {name: column[rows].tolist() for name, column in records.orders.items()}
    for k in range(len(rows)):
        outcome = label(OUTCOMES[orders["outcome"][k]])
        said = {"outcome": outcome, "round": orders["version"][k] + 1, "base": orders["base"][k]}
        said |= {key: orders[key][k] for key in ("steps", "wanted", "down", "up")}
        thread = orders["client"][k] + 1
        yield _slice(VIRTUAL, thread, outcome, orders["started"][k], orders["finished"][k], said)
        for stage, began, ended in _STAGES:
            if orders[ended][k] > orders[began][k]:
                yield _slice(VIRTUAL, thread, stage, orders[began][k], orders[ended][k], {})


def _group(records: Records, client: int) -> str:
    edge = 0
    for group in records.groups:
        edge += group.count
        if client < edge:
            return group.name
    return "device"


def _learned(records: Records) -> Iterator[Event]:
    metrics = records.metrics
    for name in ("accuracy", "heard"):
        for row in np.flatnonzero(np.isfinite(metrics[name])).tolist():
            at, value = float(metrics["virtual_seconds"][row]) * 1e6, float(metrics[name][row])
            yield {"ph": "C", "pid": VIRTUAL, "name": name, "ts": at, "args": {name: value}}


def _wall(path: Path) -> Iterator[Event]:
    """Yield the work of actors, if it was noted."""
    if not path.exists():
        return
    rows = list(rows_of(path, ("track", "what", "began", "ended")))
    tracks = {track: number for number, track in enumerate(dict.fromkeys(track for track, *_ in rows))}
    yield _name("process_name", WALL, 0, "wall clock")
    for track, number in tracks.items():
        yield _name("thread_name", WALL, number, track)
    for track, what, began, ended in rows:
        yield _slice(WALL, tracks[track], what, began, ended, {})


def busy(path: Path) -> Iterable[tuple[str, str, float]]:
    """Yield (track, what was done, seconds in all) of the work that was noted, for tables."""
    found: dict[tuple[str, str], float] = {}
    tracks: dict[int, str] = {}
    for event in _wall(path):
        if event["ph"] == "M" and event["name"] == "thread_name":
            tracks[event["tid"]] = event["args"]["name"]
        elif event["ph"] == "X":
            key = tracks[event["tid"]], event["name"]
            found[key] = found.get(key, 0.0) + event["dur"] / 1e6
    return ((track, what, seconds) for (track, what), seconds in found.items())


def _name(kind: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}


def _slice(process: int, thread: int, name: str, began: int, ended: int, said: Event) -> Event:
    return {
        "ph": "X", "pid": process, "tid": thread, "name": name, "ts": began / _US, "dur": (ended - began) / _US,
        "args": said,
    }  # fmt: skip
