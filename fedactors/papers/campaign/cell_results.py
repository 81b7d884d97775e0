"""What is kept of a cell of a campaign, as a small JSON file: figures, digests, code, machine and cost."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

from fedactors import bits
from fedactors.papers.experiment import DIVERGED, Evaluation, Label, Measures
from fedactors.run_files.files import damaged, object_of
from fedactors.run_files.summary_file import summary_of
from fedactors.run_files.writing import write
from fedactors.study.run_folders import engine_of

SCHEMA = "fedactors/paper-cell/1"
CHANGED = "-dirty"  # behind a commit: code or scenarios had changes that are not in it
_ODD = re.compile(r"[^A-Za-z0-9.=,+-]+")
_MADE_BY = "made_by.json"
_UNKNOWN: Mapping[str, Any] = {"commit": "", "machine": {}}  # of a run that does not say who made it
_APART = ("curve", "folder", "further")  # of the measures
_DIGITS = 6  # of what is kept of a curve
_CODE = ("fedactors", "scenarios", "traces")  # folders of a checkout that decide what a run computes


class CellResult(NamedTuple):
    """What is known of a cell that came to its end."""

    asked: str  # digest of what the scenario says
    run: str  # name of the run's folder
    engine: str
    measures: Measures
    failure: str  # why the run diverged; nothing if it did not
    code: Mapping[str, str]
    machine: Mapping[str, Any]
    wall_seconds: float
    digests: Mapping[str, str]  # of the run's plans, metrics and model


def file_name(labels: tuple[tuple[str, Label], ...]) -> str:
    """Return the name of a cell's file, made of its labels."""
    return ",".join(f"{_ODD.sub('_', axis)}={_ODD.sub('_', str(label))}" for axis, label in labels) + ".json"


def store(path: Path, place: Mapping[str, Any], folder: Path, measures: Measures, failure: str) -> None:
    """Write what is kept of the run in `folder`; `place` says which cell it is. Raises RunFolderError, OSError."""
    summary = summary_of(folder)
    made_with = dict(summary.get("made_with") or {})
    noted = folder / _MADE_BY
    made_by = object_of(noted) if noted.exists() else _UNKNOWN
    said = {
        "schema": SCHEMA,
        **place,
        "run": folder.name,
        "failure": failure,
        "digests": summary.get("digests") or {},
        "code": {**made_with, "engine": engine_of(summary), "commit": made_by["commit"]},
        "machine": made_by["machine"],
        "cost": {"wall_seconds": round(summary["wall_seconds"], 1)},
        "measures": _figures(measures),
        "curve": _curve(measures),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, lines_of_keys(said))


def maker() -> dict[str, Any]:
    """Return which commit and machine run a cell. To be asked before the first one: code may be changed meanwhile."""
    return {"commit": commit(), "machine": machine()}


def note_maker(folder: Path, made_by: Mapping[str, Any]) -> None:
    """Note in a run's folder which commit and machine (`maker`) finished it: another process may store its result."""
    write(folder / _MADE_BY, lines_of_keys(made_by))


def lines_of_keys(said: Mapping[str, Any]) -> str:
    """Return a JSON object with a line for each of its keys: small, and its changes can be read."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in said.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load(path: Path) -> CellResult:
    """Read the result of a cell. Raises RunFolderError if it is damaged."""
    found = object_of(path)
    try:
        figures = dict(found["measures"])
        curve = tuple(_points(found["curve"]))
        return CellResult(
            str(found["asked"]),
            str(found["run"]),
            str(found["code"]["engine"]),
            DIVERGED if found["failure"] else Measures(**figures, curve=curve),
            str(found["failure"]),
            dict(found["code"]),
            dict(found["machine"]),
            float(found["cost"]["wall_seconds"]),
            dict(found["digests"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(
            path, f"{type(error).__name__}: {error}", "the result of a cell, as a campaign writes it"
        ) from None


def _figures(measures: Measures) -> dict[str, Any]:
    kept = {name: _finite(value) for name, value in measures._asdict().items() if name not in _APART}
    return {**kept, "further": {name: _finite(value) for name, value in measures.further.items()}}


def _finite(value: float | None) -> float | None:
    return value if value is None or isfinite(value) else None


def _curve(measures: Measures) -> dict[str, list[float | None]]:
    columns: dict[str, list[float | None]] = {name: [] for name in Evaluation._fields}
    for point in measures.curve:
        columns["round"].append(point.round)
        columns["accuracy"].append(_short(point.accuracy))
        columns["loss"].append(_short(point.loss))
    return columns


def _short(value: float) -> float | None:
    """Return a value with few digits; None if it is no finite number, which JSON has no word for."""
    return float(f"{value:.{_DIGITS}g}") if isfinite(value) else None


def _points(columns: Mapping[str, Sequence[Any]]) -> Iterator[Evaluation]:
    for round, accuracy, loss in zip(*(columns[name] for name in Evaluation._fields), strict=True):
        yield Evaluation(round, nan if accuracy is None else accuracy, nan if loss is None else loss)


@cache
def machine() -> dict[str, Any]:
    """Return what this machine is."""
    return {
        "processor": bits.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


@cache
def commit() -> str:
    """Return the commit of the code, see `commit_of`, when this is first asked; nothing outside of a checkout."""
    return commit_of(Path(__file__).parents[3])


def commit_of(checkout: Path) -> str:
    """Return the commit of a checkout, with `CHANGED` if code or scenarios have changed since; nothing if it is none.

    Results and pages that a campaign writes are not code.
    """
    found = _git(checkout, "describe", "--always", "--exclude=*", "--abbrev=12")
    changed = found and _git(checkout, "status", "--porcelain", "--untracked-files=no", "--", *_CODE)
    return f"{found}{CHANGED}" if changed else found


def _git(checkout: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
