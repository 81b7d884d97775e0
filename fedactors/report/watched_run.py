"""What `watch` shows of the metrics of a run: each line of the file is read once, as rounds are added to it."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from fedactors.report.palette import OUTCOME
from fedactors.run_files.files import json_of, problem, reading

Row = Mapping[str, Any]

CURVES = ("accuracy", "train_loss")
_LARGEST = 10**18  # a figure of one round: their sum can be told
_HIGHEST = 1e100  # a measure that is drawn
_SPENT = ("bytes_down", "bytes_up", "joules", "wall_seconds", "virtual_seconds")


class WatchedRun:
    """The figures of the rows of metrics at `path`, as far as `look` has read them: sums, curves and the last row.

    `curves` holds the values that can be drawn, eight bytes for each round.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self.rounds = 0
        self.last: Row = {}
        self.curves = {name: array("d") for name in CURVES}
        self.outcomes = dict.fromkeys(OUTCOME, 0)
        self.bytes_moved: float = 0
        self.joules = 0.0
        self._file = (0, 0)  # device and inode
        self._end = 0  # of the last line read
        self._last_line = b""

    def look(self) -> bool:
        """Read the lines that are new; return whether anything has changed.

        Begins again where the file is another one, or does not go on from the last line: a run that is resumed goes
        back to its checkpoint. A last line that is being written is left for the next look. Raises RunFolderError,
        which names the line, if the file cannot be read or a figure that is shown is no number to compute with.
        """
        with reading(self._path) as file:
            again = not self._goes_on(file)
            if again:
                changed = self.rounds > 0
                self._begin()
                self._file = _identity(file)
            else:
                changed = False
            file.seek(self._end)
            for line in file:
                if line.startswith(b"{") and not line.endswith(b"\n"):
                    break
                self._add(line)
                changed = True
        return changed

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether what was read of the file is still there, as its last line shows."""
        if self._file != _identity(file):
            return False
        file.seek(self._end - len(self._last_line))
        return file.read(len(self._last_line)) == self._last_line

    def _add(self, line: bytes) -> None:
        number = self.rounds + 1
        row = json_of(self._path, line, number)
        _check(self._path, number, row)
        self.rounds = number
        self.last = row
        self._end += len(line)
        self._last_line = line
        for name, values in self.curves.items():
            if row.get(name) is not None and abs(row[name]) <= _HIGHEST:
                values.append(row[name])
        for name in self.outcomes:
            self.outcomes[name] += row.get("outcomes", {}).get(name, 0)
        self.bytes_moved += row.get("bytes_down", 0) + row.get("bytes_up", 0)
        self.joules += row.get("joules", 0.0)


def _identity(file: BinaryIO) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino


def _check(path: Path, line: int, row: Row) -> None:
    """Raise RunFolderError if a figure that is shown of a row is no number that can be computed with."""
    outcomes = row.get("outcomes", {})
    if not isinstance(outcomes, Mapping):
        raise problem(path, f"outcomes: found {_short(outcomes)}", "a JSON object", line)
    for name, value in [*((name, row.get(name, 0)) for name in _SPENT), *outcomes.items()]:
        if not (isinstance(value, int | float) and 0 <= value <= _LARGEST):
            raise problem(path, f"{name}: found {_short(value)}", "a finite number, not negative", line)
    for name in CURVES:
        if not isinstance(row.get(name), int | float | None):
            raise problem(path, f"{name}: found {_short(row[name])}", "a number", line)


def _short(value: object) -> str:
    return repr(value)[:40]
