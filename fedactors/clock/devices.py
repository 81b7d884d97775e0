"""How fast each device of a group computes and communicates: constants, tables of figures, recordings over time."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from fedactors.clock.availability import Int64
from fedactors.clock.flow import CONSTANT, FlowColumns
from fedactors.clock.recording_paths import locate, locate_all
from fedactors.errors import TraceError, shortened
from fedactors.plan import NEVER, SECOND
from fedactors.scenario.population import Compute, GroupOptions
from fedactors.scenario.recordings import DeviceRecording, Links, Places, RateRecording
from fedactors.streams import Purpose, stream
from fedactors.traces import device_tables
from fedactors.traces.device_selection import select
from fedactors.traces.device_tables import DeviceTable
from fedactors.traces.format_registry import read_latency, read_series, read_table
from fedactors.traces.series import BYTES_PER_SECOND, FULL_SHARE, PPM, Series, join, padded

_TRAINING = 3  # times an inference, as in FedScale
_LONGEST = NEVER // 4  # ns that a sample takes, where it is worked out


@dataclass(frozen=True)
class GroupSetting:
    """What a group's figures depend on beside the group."""

    seed: int
    folder: Path  # of the scenario
    flops: int  # of the model, forward and backward, for one sample
    seconds: float | None = None  # for drawing a group's windows, which are an estimate if that is not enough


@dataclass(frozen=True)
class Hardware:
    """One group's devices, in columns `(count,)`; where a flow varies, its column holds the best it ever has."""

    per_sample: Int64  # ns
    down: Int64  # bytes/s
    up: Int64  # bytes/s
    latency: Int64  # ns
    flows: dict[str, FlowColumns]  # "share", "down", "up"


def hardware(group: GroupOptions, setting: GroupSetting) -> Hardware:
    """Return the devices of `group`; reads its recordings. Raises TraceError if one cannot be used."""
    count = group.count
    network = group.network
    compute = group.compute
    share = compute.share and _varying(compute.share, _series(compute.share, PPM, setting), group, setting, 2)
    down, up = _directions(network.trace, group, setting) if network.trace else (None, None)
    found = {
        "share": share or _constant(np.full(count, FULL_SHARE, np.int64)),
        "down": down or _constant(_link(group, setting, 0)),
        "up": up or _constant(_link(group, setting, 1)),
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
    return min(max(1, -(-flops * SECOND // speed)), _LONGEST)


def _from_table(compute: Compute, wanted: DeviceRecording, group: GroupOptions, setting: GroupSetting) -> Int64:
    table, path = _table(wanted, setting)
    row = assigned(wanted.assign, len(table), group, setting.seed, 1)
    times = np.array(_times(table, wanted, path, setting.flops), np.int64)[row]
    if compute.spread:
        times = _scaled(times, _spread(FULL_SHARE, compute.spread, group, setting.seed, Purpose.SPEED, 0))
    return times


def _scaled(times: Int64, factors: Int64) -> Int64:
    """Return `times` by `factors` in ppm, rounded down; at least 1, at most `_LONGEST`."""
    scaled: Int64 = np.maximum(1, times * factors // FULL_SHARE)
    for k in np.flatnonzero(times * factors.astype(float) >= NEVER):  # the product may not fit 64 bits
        scaled[k] = min(int(times[k]) * int(factors[k]) // FULL_SHARE, _LONGEST)
    return scaled


def _times(table: DeviceTable, wanted: DeviceRecording, path: Path, flops: int) -> list[int]:
    """Return the ns per sample of each row, by the first column that says it."""
    if device_tables.TRAIN in table.columns:
        return _positive(table, device_tables.TRAIN, path)
    if device_tables.FLOPS in table.columns:
        return [training_time(flops, speed) for speed in _positive(table, device_tables.FLOPS, path)]
    if device_tables.SAMPLE in table.columns:
        return _training_from_inference(_positive(table, device_tables.SAMPLE, path), wanted.reference, flops)
    needed = "training_ns, flops_per_s, …"
    if device_tables.SCORE in table.columns:
        if wanted.per_point is not None:
            scores = _positive(table, device_tables.SCORE, path)
            return [training_time(flops, score * wanted.per_point) for score in scores]
        needed = "compute.table.per_point, such as 100 kFLOP/s"
    raise TraceError(f"{path}: does not say how fast devices compute (accepted: {needed})")


def _positive(table: DeviceTable, name: str, path: Path) -> list[int]:
    """Return a column. Raises TraceError if it holds a 0, which is no speed and no time."""
    values: list[int] = table.columns[name].tolist()
    if 0 in values:
        raise TraceError(f'{path}: device "{table.names[values.index(0)]}": {name} 0 (accepted: above 0)')
    return values


def _training_from_inference(times: list[int], reference: int | None, flops: int) -> list[int]:
    """Return the ns per sample from those of an inference, by a model of `reference` operations if that is given."""
    if reference is None:
        return [min(_TRAINING * time, _LONGEST) for time in times]
    return [min(-(-time * flops // reference), _LONGEST) for time in times]


def _link(group: GroupOptions, setting: GroupSetting, which: int) -> Int64:
    """Return the constant rate of each device, down (0) or up (1), bytes/s."""
    network = group.network
    column = (device_tables.DOWN, device_tables.UP)[which]
    if network.table is None:
        median = (network.down, network.up)[which]
        return _spread(median, network.spread, group, setting.seed, Purpose.LINK, which)
    table, path = _table(network.table, setting)
    if column not in table.columns:
        raise TraceError(f"{path}: has no column {column} (accepted: {device_tables.DOWN} and {device_tables.UP})")
    return np.array(_positive(table, column, path))[assigned(network.table.assign, len(table), group, setting.seed, 1)]


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


def _constant(rate: Int64) -> FlowColumns:
    """Return a flow that does not vary, of each device."""
    zeros = np.zeros_like(rate)
    return FlowColumns(None, zeros + CONSTANT, zeros, True, rate)


def _directions(
    links: Links, group: GroupOptions, setting: GroupSetting
) -> tuple[FlowColumns | None, FlowColumns | None]:
    """Return both directions of a group's links, None for one that is constant.

    The k-th rows of both are one recording: a device has one row, one offset and one length for both directions, and
    the direction that ends first is silent until the other ends.
    """
    down = None if links.down is None else _one_direction(links.down, "down", setting)
    up = None if links.up is None else _one_direction(links.up, "up", setting)
    length = None
    if down is not None and up is not None and links.down and links.up:
        length = _common_length(down, up, f"{links.down.path} and {links.up.path}")
        if links.down.at_end == "loop":
            down = padded(down, length)
            up = padded(up, length)

    def direction(wanted: RateRecording | None, series: Series | None) -> FlowColumns | None:
        return _varying(wanted, series, group, setting, 3, length) if wanted and series else None

    return direction(links.down, down), direction(links.up, up)


def _one_direction(wanted: RateRecording, name: str, setting: GroupSetting) -> Series:
    """Return the rows of one direction. Raises TraceError if the other's are among them, as in a log of both."""
    series = _series(wanted, BYTES_PER_SECOND, setting)
    if all(any(row.endswith(end) for row in series.names) for end in ("/down", "/up")):
        raise TraceError(f'{wanted.path}: rows of both directions for {name} (accepted: rows: "*/{name}")')
    return series


def _common_length(down: Series, up: Series, paths: str) -> Int64:
    """Return how long each link lasts, `(rows,)` ns. Raises TraceError if the rows cannot be two directions of one."""
    if len(down) != len(up):
        problem = f"{len(down)} rows down and {len(up)} up"
        raise TraceError(f"{paths}: {problem} (accepted: as many, because the k-th of both are one link)")
    longer = np.maximum(down.end, up.end)
    apart = np.flatnonzero(2 * np.minimum(down.end, up.end) < longer)
    if len(apart):
        k = int(apart[0])
        lasts = f"{down.names[k]} lasts {down.end[k] / SECOND:g} s down, and {up.names[k]} {up.end[k] / SECOND:g} s up"
        raise TraceError(f"{paths}: {lasts} (accepted: two directions of one recording, the shorter at least half)")
    return longer


def _varying(
    wanted: RateRecording,
    series: Series,
    group: GroupOptions,
    setting: GroupSetting,
    draw: int,
    length: Int64 | None = None,
) -> FlowColumns:
    """Return which rows of `series` the devices follow; offsets lie within `length`, by default that of the row."""
    zeros = np.zeros(group.count, np.int64)
    row = assigned(wanted.assign, len(series), group, setting.seed, draw)
    shift = zeros
    if wanted.offset == "random":
        drawn = stream(setting.seed, Purpose.OFFSET, entity(group), draw).random(group.count)
        lasts = (series.end if length is None else length)[row]
        shift = (drawn * lasts).astype(np.int64) % lasts
    return FlowColumns(series, row, shift, wanted.at_end == "loop", zeros)


def _series(wanted: RateRecording, unit: str, setting: GroupSetting) -> Series:
    paths = locate_all(wanted.path, setting.folder)
    series = _read_joined(paths, wanted)
    if series.unit != unit:
        raise TraceError(f"{paths[0]}: is in {series.unit} (accepted: a recording in {unit})")
    rows = np.array([k for k, name in enumerate(series.names) if fnmatchcase(name, wanted.rows)], np.int64)
    chosen = select(series, rows)
    if not len(rows) or not isinstance(chosen, Series):
        shown = ", ".join(series.names[:5])
        raise TraceError(f'{paths[0]}: no row is called "{shortened(wanted.rows)}" (accepted: {shown})')
    if unit == PPM and (chosen.value > FULL_SHARE).any():
        raise TraceError(f"{paths[0]}: a share of more than the whole processor (accepted: at most {FULL_SHARE} ppm)")
    return chosen


def _read_joined(paths: list[Path], wanted: RateRecording) -> Series:
    """Return the rows of all files; where there are several files, a row's name begins with its file."""
    parts = [read_series(path, wanted.format, wanted.strict) for path in paths]
    if len(parts) > 1:
        parts = [replace(p, names=tuple(f"{path}:{n}" for n in p.names)) for path, p in zip(paths, parts, strict=True)]
    return join(parts)


def _best(flow: FlowColumns) -> Int64:
    """Return the highest rate of each device; at least 1."""
    if flow.series is None:
        return flow.constant
    peaks = np.maximum.reduceat(flow.series.value, flow.series.starts[:-1])
    return np.maximum(1, peaks[flow.row])
