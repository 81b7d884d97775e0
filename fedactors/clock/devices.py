"""How fast each device of a group computes and communicates: constants, tables of figures, recordings over time."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from fedactors.clock.availability import Int64
from fedactors.clock.flow import CONSTANT, Share
from fedactors.clock.recording_paths import locate, locate_all
from fedactors.errors import TraceError
from fedactors.plan import NEVER, SECOND
from fedactors.scenario.population import Compute, GroupOptions
from fedactors.scenario.recordings import DeviceRecording, Places, RateRecording
from fedactors.streams import Purpose, stream
from fedactors.traces import device_tables
from fedactors.traces.device_selection import select
from fedactors.traces.device_tables import DeviceTable
from fedactors.traces.format_registry import read_latency, read_series, read_table
from fedactors.traces.series import BYTES_PER_SECOND, PPM, Series, join

_TRAINING = 3  # times an inference, as in FedScale
FULL = 1_000_000  # ppm


@dataclass(frozen=True)
class GroupSetting:
    """What a group's figures depend on beside the group."""

    seed: int
    folder: Path  # of the scenario
    flops: int  # of the model, forward and backward, for one sample


@dataclass(frozen=True)
class Hardware:
    """One group's devices, in columns `(count,)`; where a flow varies, its column holds the best it ever has."""

    per_sample: Int64  # ns
    down: Int64  # bytes/s
    up: Int64  # bytes/s
    latency: Int64  # ns
    flows: dict[str, Share]  # "share", "down", "up"


def hardware(group: GroupOptions, setting: GroupSetting) -> Hardware:
    """Return the devices of `group`; reads its recordings. Raises TraceError if one cannot be used."""
    count, network = group.count, group.network
    compute = group.compute
    down, up = (network.trace.down, network.trace.up) if network.trace else (None, None)
    found = {
        "share": _over_time(compute.share, PPM, np.full(count, FULL, np.int64), group, setting, 2),
        # both directions of a link are one recording: the same row and offset
        "down": _over_time(down, BYTES_PER_SECOND, _link(group, setting, 0), group, setting, 3),
        "up": _over_time(up, BYTES_PER_SECOND, _link(group, setting, 1), group, setting, 3),
    }
    return Hardware(
        per_sample=_speed(group, setting),
        down=_best(found["down"]),
        up=_best(found["up"]),
        latency=_latency(network.places, group, setting),
        flows=found,
    )


def entity(group: GroupOptions) -> int:
    """Return a number for a group that does not depend on its place in the list."""
    return zlib.crc32(group.name.encode())


def assigned(how: str, rows: int, group: GroupOptions, seed: int, draw: int) -> Int64:
    """Return which of `rows` each device of `group` takes; `draw` numbers the draws for different things."""
    if how == "shuffle":
        return stream(seed, Purpose.TRACE, entity(group), draw).integers(rows, size=group.count)
    return np.arange(group.count, dtype=np.int64) % rows


def _spread(median: int, spread: float, group: GroupOptions, seed: int, purpose: Purpose, which: int) -> Int64:
    """Draw a lognormal value per device around `median`; at least 1."""
    if spread == 0.0:
        return np.full(group.count, median, np.int64)
    draws = stream(seed, purpose, entity(group), which).standard_normal(group.count)
    values: Int64 = np.clip(np.rint(median * np.exp(spread * draws)), 1, 2.0**60).astype(np.int64)
    return values


def _speed(group: GroupOptions, setting: GroupSetting) -> Int64:
    """Return the ns per sample of each device."""
    compute = group.compute
    if compute.table is not None:
        return _from_table(compute, compute.table, group, setting)
    median = compute.per_sample
    if median is None:
        median = training_time(setting.flops, compute.flops or 1)
    return _spread(median, compute.spread, group, setting.seed, Purpose.SPEED, 0)


def training_time(flops: int, speed: int) -> int:
    """Return the ns that `flops` operations take at `speed` operations per second, rounded up; at least 1."""
    return min(max(1, -(-flops * SECOND // speed)), NEVER // 4)


def _from_table(compute: Compute, wanted: DeviceRecording, group: GroupOptions, setting: GroupSetting) -> Int64:
    table, path = _table(wanted, setting)
    row = assigned(wanted.assign, len(table), group, setting.seed, 1)
    times = np.array([max(1, time) for time in _times(table, wanted, path, setting.flops)], np.int64)[row]
    if compute.spread:
        times = np.maximum(1, times * _spread(FULL, compute.spread, group, setting.seed, Purpose.SPEED, 0) // FULL)
    return times


def _times(table: DeviceTable, wanted: DeviceRecording, path: Path, flops: int) -> list[int]:
    """Return the ns per sample of each row, by the first column that says it."""
    columns: dict[str, list[int]] = {name: values.tolist() for name, values in table.columns.items()}
    if device_tables.TRAIN in columns:
        return columns[device_tables.TRAIN]
    if device_tables.FLOPS in columns:
        return [training_time(flops, max(1, speed)) for speed in columns[device_tables.FLOPS]]
    if device_tables.SAMPLE in columns:
        return _training_from_inference(columns[device_tables.SAMPLE], wanted.reference, flops)
    needed = "training_ns, flops_per_s, …"
    if device_tables.SCORE in columns:
        if wanted.per_point is not None:
            return [training_time(flops, max(1, score * wanted.per_point)) for score in columns[device_tables.SCORE]]
        needed = "compute.table.per_point, such as 100 kFLOP/s"
    raise TraceError(f"{path}: does not say how fast devices compute (accepted: {needed})")


def _training_from_inference(times: list[int], reference: int | None, flops: int) -> list[int]:
    """Return the ns per sample from those of an inference, by a model of `reference` operations if that is given."""
    if reference is None:
        return [_TRAINING * time for time in times]
    return [-(-time * flops // reference) for time in times]


def _link(group: GroupOptions, setting: GroupSetting, which: int) -> Int64:
    """Return the constant rate of each device, down (0) or up (1), bytes/s."""
    network, column = group.network, (device_tables.DOWN, device_tables.UP)[which]
    if network.table is None:
        median = (network.down, network.up)[which]
        return _spread(median, network.spread, group, setting.seed, Purpose.LINK, which)
    table, path = _table(network.table, setting)
    if column not in table.columns:
        raise TraceError(f"{path}: has no column {column} (accepted: {device_tables.DOWN} and {device_tables.UP})")
    return np.maximum(1, table.columns[column][assigned(network.table.assign, len(table), group, setting.seed, 1)])


def _table(wanted: DeviceRecording, setting: GroupSetting) -> tuple[DeviceTable, Path]:
    path = locate(wanted.path, setting.folder)
    table = read_table(path, wanted.format, wanted.strict)
    if not len(table):
        raise TraceError(f"{path}: holds no device")
    return table, path


def _latency(places: Places | None, group: GroupOptions, setting: GroupSetting) -> Int64:
    if places is None:
        return np.full(group.count, group.network.latency, np.int64)
    path = locate(places.path, setting.folder)
    matrix = read_latency(path, places.format, places.strict)
    if places.server not in matrix.names:
        shown = ", ".join(matrix.names[:5])
        raise TraceError(f'{path}: no place "{places.server}" for the server (accepted: {shown}, …)')
    at = assigned(places.assign, len(matrix), group, setting.seed, 5)
    latency: Int64 = matrix.ns[at, matrix.names.index(places.server)] // 2
    return latency


def _over_time(
    wanted: RateRecording | None, unit: str, constant: Int64, group: GroupOptions, setting: GroupSetting, draw: int
) -> Share:
    nobody = np.zeros(group.count, np.int64)
    if wanted is None:
        return Share(None, nobody + CONSTANT, nobody, True, constant)
    series = _series(wanted, unit, setting)
    row = assigned(wanted.assign, len(series), group, setting.seed, draw)
    shift = nobody
    if wanted.offset == "random":
        drawn = stream(setting.seed, Purpose.OFFSET, entity(group), draw).random(group.count)
        shift = (drawn * series.end[row]).astype(np.int64) % series.end[row]
    return Share(series, row, shift, wanted.at_end == "loop", nobody)


def _series(wanted: RateRecording, unit: str, setting: GroupSetting) -> Series:
    paths = locate_all(wanted.path, setting.folder)
    series = _read_joined(paths, wanted)
    if series.unit != unit:
        raise TraceError(f"{paths[0]}: is in {series.unit} (accepted: a recording in {unit})")
    rows = np.array([k for k, name in enumerate(series.names) if fnmatchcase(name, wanted.rows)], np.int64)
    chosen = select(series, rows)
    if not len(rows) or not isinstance(chosen, Series):
        shown = ", ".join(series.names[:5])
        raise TraceError(f'{paths[0]}: no row is called "{wanted.rows}" (accepted: {shown})')
    if unit == PPM and (chosen.value > FULL).any():
        raise TraceError(f"{paths[0]}: a share of more than the whole processor (accepted: at most {FULL} ppm)")
    return chosen


def _read_joined(paths: list[Path], wanted: RateRecording) -> Series:
    """Return the rows of all files; where there are several files, a row's name begins with its file."""
    parts = [read_series(path, wanted.format, wanted.strict) for path in paths]
    if len(parts) > 1:
        parts = [replace(p, names=tuple(f"{path}:{n}" for n in p.names)) for path, p in zip(paths, parts, strict=True)]
    return join(parts)


def _best(share: Share) -> Int64:
    """Return the highest rate of each device; at least 1."""
    if share.series is None:
        return share.constant
    peaks = np.maximum.reduceat(share.series.value, share.series.starts[:-1])
    return np.maximum(1, peaks[share.row])
