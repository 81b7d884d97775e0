"""What a recording of any kind holds, at a glance: availability, rates over time, device tables, latencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np

from fedactors.plan import Time
from fedactors.traces.describe import LEVELS, describe, picture, repaired, shown_time
from fedactors.traces.device_tables import DeviceTable, Matrix
from fedactors.traces.series import Series
from fedactors.traces.timeline import Int64, Repair, Timeline

PARTS = 24  # of the longest row, in the picture of rates
_LABELS = tuple(f"{100 * part // PARTS}%" for part in range(PARTS))
_HOURS = tuple(f"{hour:02}:00" for hour in range(24))


@dataclass(frozen=True)
class Picture:
    """Bars to draw: a title, a label and a height for each; None where nothing was observed."""

    title: str
    labels: tuple[str, ...]
    heights: tuple[float | None, ...]


class Summary(Protocol):
    """What is known of a recording."""

    def data(self) -> dict[str, object]:
        """Return plain values for JSON."""
        ...

    def text(self) -> str:
        """Return some lines for a terminal."""
        ...


@dataclass(frozen=True)
class RateSummary:
    """Figures of a Series; quantiles are over time, in its unit."""

    rows: int
    unit: str
    pieces: int
    longest: Time
    total: Time  # of all rows
    mean: float
    quantiles: dict[float, int]
    course: tuple[float | None, ...]  # mean in each of 24 equal parts of the longest row
    repairs: tuple[Repair, ...]

    def data(self) -> dict[str, object]:
        """Return everything as plain values for JSON."""
        levels = {str(level): value for level, value in self.quantiles.items()}
        return asdict(self) | {"quantiles": levels, "repairs": [asdict(repair) for repair in self.repairs]}

    def text(self) -> str:
        """Return some ten lines for a terminal."""
        levels = ", ".join(f"{level:.0%} {value:,}" for level, value in self.quantiles.items())
        lines = [
            f"{self.rows:,} rows of {self.unit}, {self.pieces:,} pieces; the longest lasts {shown_time(self.longest)}",
            f"{self.mean:,.0f} {self.unit} on average over time, at most: {levels}",
            f"from the beginning to the end of the longest row, highest {max(map(_or0, self.course)):,.0f}",
        ]
        return "\n".join([*lines, *picture(self.course), *repaired(self.repairs)])


@dataclass(frozen=True)
class Columns:
    """Figures of a Table: quantiles of each column, and how many different texts each label has."""

    devices: int
    quantiles: dict[str, dict[float, int]]
    labels: dict[str, int]
    repairs: tuple[Repair, ...]

    def data(self) -> dict[str, object]:
        """Return everything as plain values for JSON."""
        columns = {name: {str(k): v for k, v in levels.items()} for name, levels in self.quantiles.items()}
        return asdict(self) | {"quantiles": columns, "repairs": [asdict(repair) for repair in self.repairs]}

    def text(self) -> str:
        """Return a line for each column."""
        lines = [f"{self.devices:,} devices"]
        for name, levels in self.quantiles.items():
            lines.append(f"{name} at most: {', '.join(f'{level:.0%} {value:,}' for level, value in levels.items())}")
        lines += [f"{name}: {count:,} different ones" for name, count in self.labels.items()]
        return "\n".join([*lines, *repaired(self.repairs)])


def summarize(recording: Timeline | Series | DeviceTable | Matrix) -> Summary:
    """Return the figures of `recording`."""
    if isinstance(recording, Timeline):
        return describe(recording)
    if isinstance(recording, Series):
        return _rates(recording)
    if isinstance(recording, DeviceTable):
        labels = {name: len(set(texts)) for name, texts in recording.labels.items()}
        return _columns(len(recording), recording.columns, labels, recording.repairs)
    return _columns(len(recording), {"round_trip_ns": recording.ns.ravel()}, {}, recording.repairs)


def bars(recording: Timeline | Series | DeviceTable | Matrix) -> Picture:
    """Return what a picture of `recording` shows."""
    if isinstance(recording, Timeline):
        return Picture("share of devices that are on, by hour of the day", _HOURS, describe(recording).hourly)
    if isinstance(recording, Series):
        title = f"{recording.unit}, mean in each 24th of the longest row"
        return Picture(title, _LABELS, _rates(recording).course)
    if isinstance(recording, DeviceTable):
        name, column = next(iter(recording.columns.items()), ("devices", np.ones(len(recording), np.int64)))
    else:
        name, column = "round_trip_ns", recording.ns.ravel()
    counts, edges = np.histogram(column, bins=PARTS)
    return Picture(f"devices by {name}", tuple(f"{edge:.3g}" for edge in edges[:-1]), tuple(counts.tolist()))


def _or0(value: float | None) -> float:
    return value or 0.0


def _columns(size: int, columns: Mapping[str, Int64], labels: dict[str, int], repairs: tuple[Repair, ...]) -> Columns:
    return Columns(size, {name: _levels(values) for name, values in columns.items()}, labels, repairs)


def _levels(values: Int64) -> dict[float, int]:
    found = np.quantile(values, LEVELS, method="inverted_cdf").tolist() if len(values) else []
    return dict(zip(LEVELS, found, strict=False))


def _rates(series: Series) -> RateSummary:
    ends = np.concatenate((series.at[1:], [0])).astype(np.int64)
    ends[series.starts[1:] - 1] = series.end
    lengths = (ends - series.at).astype(float)
    order = np.argsort(series.value, kind="stable")
    passed = np.cumsum(lengths[order])
    total = float(passed[-1]) if len(passed) else 0.0
    at = np.minimum(np.searchsorted(passed, np.array(LEVELS) * total), len(order) - 1)
    longest = int(series.end.max(initial=0))
    return RateSummary(
        rows=len(series),
        unit=series.unit,
        pieces=len(series.at),
        longest=longest,
        total=int(total),
        mean=float((lengths * series.value).sum() / total) if total else 0.0,
        quantiles=dict(zip(LEVELS, series.value[order][at].tolist(), strict=True)) if total else {},
        course=_course(series.at, ends, series.value, longest),
        repairs=series.repairs,
    )


def _course(begin: Int64, end: Int64, value: Int64, longest: Time) -> tuple[float | None, ...]:
    """Return the mean in each part of [0, longest), over all rows that last so long; None where none does."""
    means: list[float | None] = []
    for part in range(PARTS):
        low, high = longest * part // PARTS, longest * (part + 1) // PARTS
        inside = np.clip(np.minimum(end, high) - np.maximum(begin, low), 0, None).astype(float)
        means.append(float((inside * value).sum() / inside.sum()) if inside.any() else None)
    return tuple(means)
