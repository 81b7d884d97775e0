"""What a recording of any kind holds, at a glance: availability, rates over time, device tables, latencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np

from fedactors.traces.describe import LEVELS, course, describe, repaired
from fedactors.traces.device_tables import DeviceTable, Matrix
from fedactors.traces.rate_summary import PARTS, Directions, by_direction
from fedactors.traces.series import Series
from fedactors.traces.timeline import Int64, Repair, Timeline

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
        parts = by_direction(recording)
        return parts[""] if "" in parts else Directions(parts, recording.repairs)
    if isinstance(recording, DeviceTable):
        labels = {name: len(set(texts)) for name, texts in recording.labels.items()}
        return _columns(len(recording), recording.columns, labels, recording.repairs)
    return _columns(len(recording), {"round_trip_ns": recording.ns.ravel()}, {}, recording.repairs)


def bars(recording: Timeline | Series | DeviceTable | Matrix) -> Picture:
    """Return what a picture of `recording` shows."""
    if isinstance(recording, Timeline) and not recording.time_of_day:
        return Picture("share of devices that are on, in each 24th of the recording", _LABELS, course(recording))
    if isinstance(recording, Timeline):
        return Picture("share of devices that are on, by hour of the day", _HOURS, describe(recording).hourly)
    if isinstance(recording, Series):
        (way, figures), *_ = by_direction(recording).items()
        title = f"{recording.unit}{f' {way}' * bool(way)}, mean in each 24th of the longest row"
        return Picture(title, _LABELS, figures.course)
    if isinstance(recording, DeviceTable):
        name, column = next(iter(recording.columns.items()), ("devices", np.ones(len(recording), np.int64)))
    else:
        name, column = "round_trip_ns", recording.ns.ravel()
    counts, edges = np.histogram(column, bins=PARTS)
    return Picture(f"devices by {name}", tuple(f"{edge:.3g}" for edge in edges[:-1]), tuple(counts.tolist()))


def _columns(size: int, columns: Mapping[str, Int64], labels: dict[str, int], repairs: tuple[Repair, ...]) -> Columns:
    return Columns(size, {name: _levels(values) for name, values in columns.items()}, labels, repairs)


def _levels(values: Int64) -> dict[float, int]:
    found = np.quantile(values, LEVELS, method="inverted_cdf").tolist() if len(values) else []
    return dict(zip(LEVELS, found, strict=False))
