"""The rows of metrics of a run, which may have any number of rounds: the last few in memory, all of them on disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from fedactors.run_files.files import objects_in, whole_lines

_LAST = 16  # rows in memory: as many as a look back at the last rounds needs


class MetricRows:
    """The rows of the file of metrics at `path`: the first `count`, and those that were added here."""

    def __init__(self, path: Path, count: int = 0) -> None:
        self._path, self._count = path, count
        self._last = deque[dict[str, Any]](maxlen=_LAST)

    def add(self, row: dict[str, Any]) -> None:
        """Take in the next row, whose line is in the file."""
        self._last.append(row)
        self._count += 1

    @property
    def last(self) -> list[dict[str, Any]]:
        """The last 16 rows that were added, or all of them if there are fewer."""
        return list(self._last)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from objects_in(self._path, islice(whole_lines(self._path), self._count))
