"""Our own formats of rates over time, device tables and latencies, as CSV to write by hand and as Parquet.

    row,from_s,to_s,bytes/s    or ppm: a Series; each line is a piece, in order, from 0 without gaps
    device,inference_ns,…      a Table: `device` and any of its columns
    from,to,ns                 a Matrix: one line for each pair of places

Reading what was written gives the same: names, values and their order. Repairs are not stored.
"""

from __future__ import annotations

import numpy as np

from fedactors.errors import TraceError
from fedactors.traces import device_tables, sheet
from fedactors.traces.device_tables import DeviceTable, Matrix
from fedactors.traces.series import BYTES_PER_SECOND, PPM, Series
from fedactors.traces.sheet import CsvSheet
from fedactors.traces.source import RecordingFile, RepairLog, device, shown

_PIECE = ("row", "from", "to")
_TIMES = _PIECE[1:]
_UNITS = (BYTES_PER_SECOND, PPM)
_NUMBERS = (
    device_tables.SAMPLE,
    device_tables.TRAIN,
    device_tables.FLOPS,
    device_tables.DOWN,
    device_tables.UP,
    device_tables.SAMPLES,
    device_tables.SCORE,
)
_LABELS = (device_tables.BENCHMARK,)


def pack(recording: Series | DeviceTable | Matrix, parquet: bool) -> bytes:
    """Return `recording` as a file. Raises ValueError if a name is no Unicode text."""
    kind, flat = _flat(recording)
    return sheet.to_parquet(flat, kind) if parquet else sheet.to_csv(flat)


def _flat(recording: Series | DeviceTable | Matrix) -> tuple[str, CsvSheet]:
    if isinstance(recording, Series):
        counts = np.diff(recording.starts)
        rows = np.repeat(np.arange(len(recording)), counts)
        ends = np.append(recording.at, 0)[1:]
        ends[recording.starts[1:] - 1] = recording.end
        names = [recording.names[row] for row in rows.tolist()]
        numbers = {"from": recording.at, "to": ends, recording.unit: recording.value}
        return RATES.kind, CsvSheet(("row", *numbers), {"row": names}, numbers)
    if isinstance(recording, DeviceTable):
        order = ("device", *recording.labels, *recording.columns)
        return DEVICES.kind, CsvSheet(order, {"device": recording.names, **recording.labels}, recording.columns)
    places = recording.names
    pairs = {"from": [a for a in places for _ in places], "to": [b for _ in places for b in places]}
    return LATENCIES.kind, CsvSheet(("from", "to", "ns"), pairs, {"ns": recording.ns.ravel()})


class _Rates:
    """Reader of a Series."""

    kind = "series 1"

    def looks_like(self, data: bytes) -> bool:
        """Whether `data` is our CSV or Parquet of rates."""
        found = sheet.columns(data, _TIMES)
        return set(_PIECE) <= set(found) and len(found) > len(_PIECE)

    def read(self, source: RecordingFile, repair_log: RepairLog) -> Series:
        """Read the rates. Raises TraceError if pieces leave a gap, overlap or are out of order."""
        flat = sheet.parse(source, ("row",), _TIMES)
        unit = _unit(flat.order, source)
        names = list(flat.texts["row"])
        begin = flat.numbers["from"]
        end = flat.numbers["to"]
        heads = [k for k in range(len(names)) if k == 0 or names[k] != names[k - 1]]
        gaps = np.flatnonzero(begin != np.where(np.isin(np.arange(len(names)), heads), 0, np.roll(end, 1)))
        if len(gaps):
            k = int(gaps[0])
            accepted = "0 in a row's first line, then the end of the line before"
            raise source.error(device(names[k]), f"a piece from {begin[k]} ns", accepted)
        starts = np.array([*heads, len(names)], np.int64)
        last = end[starts[1:] - 1] if heads else end
        return Series(tuple(names[k] for k in heads), unit, starts, begin, flat.numbers[unit], last, repair_log.repairs)


def _unit(order: tuple[str, ...], source: RecordingFile) -> str:
    """Return the unit of rates that a header names. Raises TraceError if its columns are others than those of rates."""
    units = [name for name in order if name not in _PIECE]
    if not set(_PIECE) <= set(order) or units not in [[unit] for unit in _UNITS]:
        raise source.error("", f"columns {shown(','.join(order))}", f"row,from,to and one of {', '.join(_UNITS)}")
    return units[0]


class _Devices:
    """Reader of a Table."""

    kind = "table 1"

    def looks_like(self, data: bytes) -> bool:
        """Whether `data` is our CSV or Parquet of devices."""
        found = sheet.columns(data)
        return "device" in found and not {*_NUMBERS, *_LABELS}.isdisjoint(found)

    def read(self, source: RecordingFile, repair_log: RepairLog) -> DeviceTable:
        """Read the table. Raises TraceError if a column is unknown or a cell cannot be read."""
        flat = sheet.parse(source, ("device",), labels=_LABELS)
        unknown = [name for name in flat.order if name not in ("device", *_NUMBERS, *_LABELS)]
        if unknown or "device" not in flat.order or len(flat.order) == 1:
            accepted = f"device and any of {', '.join((*_NUMBERS, *_LABELS))}"
            raise source.error("", f"columns {shown(','.join(flat.order))}", accepted)
        labels = {name: tuple(flat.texts[name]) for name in flat.order if name in _LABELS}
        return DeviceTable(tuple(flat.texts["device"]), dict(flat.numbers), labels, repair_log.repairs)


class _Latencies:
    """Reader of a Matrix."""

    kind = "latency 1"

    def looks_like(self, data: bytes) -> bool:
        """Whether `data` is our CSV or Parquet of latencies."""
        return set(sheet.columns(data)) == {"from", "to", "ns"}

    def read(self, source: RecordingFile, repair_log: RepairLog) -> Matrix:
        """Read the latencies. Raises TraceError unless every pair of places stands there once, row after row."""
        flat = sheet.parse(source, ("from", "to"))
        if set(flat.order) != {"from", "to", "ns"}:
            raise source.error("", f"columns {shown(','.join(flat.order))}", "from,to,ns")
        size = int(len(flat) ** 0.5)
        names = list(flat.texts["to"][:size])
        pairs = [(a, b) for a in names for b in names]
        if size * size != len(flat) or pairs != list(zip(flat.texts["from"], flat.texts["to"], strict=True)):
            raise source.error("", f"{len(flat)} pairs", "every pair of places once, row after row")
        if len(set(names)) != len(names):
            raise TraceError("not a matrix of latencies: two places of one name")
        return Matrix(tuple(names), flat.numbers["ns"].reshape(size, size), repair_log.repairs)


RATES = _Rates()
DEVICES = _Devices()
LATENCIES = _Latencies()
