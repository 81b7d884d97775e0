"""FedScale's availability of clients: a pickle of one record per client.

    1: {"active": [51490, …], "inactive": [59046, …], "finish_time": 1123200, "duration": 972262, …}

Source: F. Lai et al., "FedScale: Benchmarking Model and System Performance of Federated Learning at Scale",
ICML 2022; `benchmark/dataset/data/device_info/client_behave_trace`. Seconds from the client's start; the i-th
window is `[active[i], inactive[i])`, and the whole repeats after `finish_time`, a number of days that differs
between clients. FedScale looks up `t % finish_time`: what lies beyond it never happens, and is cut off.

FedScale's file is sorted by the time a client is on, descending: its first clients are not a fair sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fedactors.plan import NEVER, SECOND
from fedactors.traces import pickles
from fedactors.traces.columns import RecordedWindows, assemble
from fedactors.traces.source import RecordingFile, RepairLog, device, shown
from fedactors.traces.timeline import Int64, Timeline

_ACCEPTED = '{client: {"active": [seconds], "inactive": [seconds], "finish_time": seconds}}'


class _Client(NamedTuple):
    name: str
    active: Int64  # s
    inactive: Int64  # s
    period: int  # s
    duration: int | None  # s that its windows add up to, as the file has it


def looks_like(data: bytes) -> bool:
    """Whether `data` is a pickle that contains active, inactive and finish_time."""
    return pickles.is_pickle(data) and b"inactive" in data and b"finish_time" in data


def read(source: RecordingFile, repair_log: RepairLog) -> Timeline:
    """Read every client's windows; `first` is 0 and `last` the period after which they repeat.

    Raises TraceError if the file is damaged or would run code.
    """
    clients = list(_clients(source))
    if not clients:
        raise source.error("", "no client", _ACCEPTED)
    for client in clients:  # a sum of windows other than the stated duration means lost or altered windows
        total = int((client.inactive - client.active).sum())
        if client.duration not in (None, total):
            detail = f"{total} s, stated {client.duration} s"
            repair_log.note("windows that do not add up to the stated duration", device(client.name), detail)
    clients = [_within(client, repair_log) for client in clients]
    counts = [len(client.active) for client in clients]
    starts = np.concatenate(([0], np.cumsum(counts)))
    found = RecordedWindows(
        np.repeat(np.arange(len(clients)), counts),
        np.concatenate([client.active for client in clients]) * SECOND,
        np.concatenate([client.inactive for client in clients]) * SECOND,
    )

    def place(k: int) -> str:
        row = int(found.row[k])
        return f"{device(clients[row].name)}, window {k - int(starts[row])}"

    seen = ([0] * len(clients), [client.period * SECOND for client in clients])
    return assemble([client.name for client in clients], found, seen, repair_log, place, time_of_day=False)


def _clients(source: RecordingFile) -> Iterator[_Client]:
    records = pickles.load(source)
    if not isinstance(records, dict):
        raise source.error("", "a pickle of something else", _ACCEPTED)
    for key, record in records.items():
        name = str(key) if isinstance(key, (int, str)) else ""
        if not name or not isinstance(record, dict):
            raise source.error("", f"record {shown(key)} of no client", _ACCEPTED)
        active, inactive = (_seconds(record.get(word), word, name, source) for word in ("active", "inactive"))
        if len(active) != len(inactive):
            found = f"{len(active)} times active, {len(inactive)} inactive"
            raise source.error(device(name), found, "as many of both")
        period = _seconds([record.get("finish_time")], "finish_time", name, source)
        duration = record.get("duration")
        yield _Client(name, active, inactive, int(period[0]), duration if isinstance(duration, int) else None)


def _within(client: _Client, repair_log: RepairLog) -> _Client:
    """Cut off what lies beyond the client's period."""
    beyond = int((client.inactive > client.period).sum())
    if not beyond:
        return client
    repair_log.note("window beyond finish_time cut off", device(client.name), count=beyond)
    active, inactive = (np.minimum(column, client.period) for column in (client.active, client.inactive))
    return client._replace(active=active, inactive=inactive)


def _seconds(values: object, word: str, name: str, source: RecordingFile) -> Int64:
    """Return a list of whole seconds as a column."""
    accepted = "a list of whole seconds up to 146 years"
    try:
        plain = isinstance(values, list) and set(map(type, values)) <= {int, float}
        column = np.array(values if plain else None)
        number = column.ndim == 1 and column.dtype.kind in "iuf"
        if number and ((column >= 0) & (column <= NEVER // SECOND) & (column == np.trunc(column))).all():
            return column.astype(np.int64)
    except ValueError:  # a list of lists
        pass
    raise source.error(device(name), f"{word} is {shown(values)}", accepted)
