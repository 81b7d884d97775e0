"""Properties of devices that do not change over time, in columns; and latencies between places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from fedactors.errors import TraceError
from fedactors.plan import NEVER
from fedactors.traces.timeline import Int64, Repair

SAMPLE = "inference_ns"  # ns to infer one sample; training it takes about three times as long
TRAIN = "training_ns"  # ns to train one sample, forward and backward
FLOPS = "flops_per_s"  # floating-point operations that a device does in a second
DOWN = "down_bytes_per_s"
UP = "up_bytes_per_s"
SAMPLES = "samples"  # how many the client holds
SCORE = "ai_score"  # of ai-benchmark.com: higher is faster
BENCHMARK = "benchmark"  # the name under which a phone's model is scored, "" if it is not


def _none() -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True, eq=False)
class DeviceTable:
    """One row per device; `columns` maps a name, with its unit, to integers `(devices,)`, `labels` to texts.

    Raises TraceError if columns differ in length, two devices share a name, or a number is negative.
    """

    names: tuple[str, ...]
    columns: Mapping[str, Int64]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=_none)
    repairs: tuple[Repair, ...] = ()

    def __post_init__(self) -> None:
        sizes = [len(column) for column in self.columns.values()] + [len(text) for text in self.labels.values()]
        if set(sizes) != {len(self.names)}:
            raise TraceError("not a table: columns of different lengths")
        if len(set(self.names)) != len(self.names):
            raise TraceError("not a table: two devices of one name")
        if any((column < 0).any() or (column > NEVER).any() for column in self.columns.values()):
            raise TraceError("not a table: a negative number, or one too large")

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Matrix:
    """Round-trip times between `len(names)` places, `(places, places)` ns; from the row's to the column's.

    Raises TraceError if the matrix is not square or a time is negative.
    """

    names: tuple[str, ...]
    ns: Int64
    repairs: tuple[Repair, ...] = ()

    def __post_init__(self) -> None:
        if self.ns.shape != (len(self.names), len(self.names)) or not self.names:
            raise TraceError("not a matrix of latencies: not square, or empty")
        if (self.ns < 0).any():
            raise TraceError("not a matrix of latencies: a negative time")

    def __len__(self) -> int:
        return len(self.names)


def table(
    names: Iterable[str],
    columns: Mapping[str, Sequence[int]],
    labels: Mapping[str, Sequence[str]] | None = None,
    repairs: tuple[Repair, ...] = (),
) -> DeviceTable:
    """Put plain sequences into a Table."""
    numbers = {name: np.asarray(values, dtype=np.int64) for name, values in columns.items()}
    texts = {name: tuple(values) for name, values in (labels or {}).items()}
    return DeviceTable(tuple(names), MappingProxyType(numbers), MappingProxyType(texts), repairs)
