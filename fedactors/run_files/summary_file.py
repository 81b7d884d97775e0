"""Reads summary.json of a run folder, and checks the parts of it that are computed with."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedactors.run_files.files import SUMMARY, object_of, problem

_FIGURES = ("devices", "asked", "virtual_seconds", "wall_seconds", "joules", "joules_wasted", "co2_grams", "cost")
_OBJECTS = ("final", "outcomes", "bytes", "joules_of_stages", "joules_of_groups", "joules_of_device")  # of figures
_REACHED = "to_accuracy"  # a list of such
_LARGEST = sys.float_info.max


def summary_of(run: Path) -> dict[str, Any]:
    """Return the summary of a run that has ended. Raises RunFolderError if it cannot be read, or is not there yet."""
    path = run / SUMMARY
    found = object_of(path)
    for key, part in _objects_of(path, found):
        for name, value in part.items():
            _check_figure(path, f"{key}.{name}", value)
    for key in _FIGURES:
        _check_figure(path, key, found.get(key))
    return found


def _objects_of(path: Path, summary: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects of figures in a summary. Raises RunFolderError if one is something else."""
    lines = summary.get(_REACHED) or []
    if not isinstance(lines, list):
        raise problem(path, f"{_REACHED}: found {_short(lines)}", "a list")
    parts = {key: summary.get(key) for key in (*_OBJECTS, "digests")}
    parts |= {f"{_REACHED}.{number}": line for number, line in enumerate(lines)}
    for key, part in parts.items():
        if not isinstance(part, Mapping | None):
            raise problem(path, f"{key}: found {_short(part)}", "a JSON object")
        if part and key != "digests":
            yield key, part


def _check_figure(path: Path, key: str, value: object) -> None:
    """Raise RunFolderError if `value` is no number that can be computed with."""
    if not isinstance(value, int | float | None):
        raise problem(path, f"{key}: found {_short(value)}", "a number")
    measured = key.startswith("final.")  # where runs of earlier versions wrote what is no number
    if value is not None and not measured and not abs(value) <= _LARGEST:
        raise problem(path, f"{key}: found {_short(value)}", "a finite number")


def _short(value: object) -> str:
    return repr(value)[:40]
