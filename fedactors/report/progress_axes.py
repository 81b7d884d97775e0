"""What progress is counted by: rounds, virtual time, traffic, energy, epsilon and wall time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedactors.report.measures import Floats, byte_unit, energy_unit, every, time_unit
from fedactors.run_files.records import Records

_TICKS = 500
AXES = {
    "round": "round", "virtual": "virtual time", "bytes": "traffic", "joules": "energy", "epsilon": "epsilon",
    "wall": "wall time",
}  # fmt: skip


@dataclass(frozen=True)
class ProgressAxis:
    """One way to count progress: the key of a column, and what the axis is called, unit included."""

    key: str
    name: str
    label: str
    scale: float


def axes(runs: Sequence[Records]) -> list[ProgressAxis]:
    """Return the axes that these runs can be drawn against, in one unit each."""
    columns = [progress(records) for records in runs]
    largest = {key: max((float(np.nanmax(c[key], initial=0)) for c in columns), default=0.0) for key in AXES}
    units = {
        "round": ("", 1.0),
        "virtual": time_unit(largest["virtual"]),
        "bytes": byte_unit(largest["bytes"]),
        "joules": energy_unit(largest["joules"]),
        "epsilon": ("", 1.0),
        "wall": time_unit(largest["wall"]),
    }
    return [
        ProgressAxis(key, name, f"{name} ({units[key][0]})" if units[key][0] else name, units[key][1])
        for key, name in AXES.items()
        if largest[key]
    ]


def progress(records: Records) -> dict[str, Floats]:
    """Return what each axis counts, by the end of each round."""
    metrics = records.metrics
    moved = records.ahead("bytes_down") + np.nancumsum(metrics["bytes_down"] + metrics["bytes_up"])
    return {
        "round": metrics["round"],
        "virtual": metrics["virtual_seconds"],
        "bytes": moved,
        "joules": records.ahead("joules") + np.cumsum(metrics["joules"]),  # NaN where none are counted
        "epsilon": metrics["epsilon"],  # NaN where it is not counted
        "wall": metrics["wall_seconds"],
    }


def clocks(records: Records) -> dict[str, list[float]]:
    """Return what each axis counts by the end of some rounds, evenly spread, from 0 on; without what is not known."""
    rows = every(records.rounds, _TICKS)
    found = {key: values[rows] for key, values in progress(records).items()}
    return {key: [0.0, *values.tolist()] for key, values in found.items() if np.isfinite(values).all()}
