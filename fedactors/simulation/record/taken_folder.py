"""What is said of a folder that can take no run, because it holds something."""

from __future__ import annotations

import shlex
from pathlib import Path

from fedactors.errors import RunFolderError
from fedactors.run_files.files import CHECKPOINT, METRICS, SCENARIO, SUMMARY, problem
from fedactors.run_files.summary_file import summary_of
from fedactors.simulation.endings import is_complete

_ANOTHER = "another folder: --out DIR, in Python out=…"


def taken(path: Path) -> RunFolderError:
    """Return the error that says what the folder `path` holds, and what is accepted."""
    if _stopped(path):
        go_on = f"fedactors resume {shlex.quote(str(path))}, in Python fedactors.resume({str(path)!r})"
        return problem(path, "not empty: it holds a run that was stopped", f"{_ANOTHER}; or to go on: {go_on}")
    if any((path / name).exists() for name in (SCENARIO, METRICS, SUMMARY)):
        return problem(path, "not empty: it holds a run", _ANOTHER)
    return problem(path, "not empty", _ANOTHER)


def _stopped(path: Path) -> bool:
    """Return whether a folder holds a run that did not come to its end, and a checkpoint to go on from."""
    if not ((path / CHECKPOINT).is_dir() and (path / SCENARIO).exists()):  # a branch that was not made to its end
        return False
    try:
        summary = summary_of(path) if (path / SUMMARY).exists() else {}
    except RunFolderError:
        return False
    return not is_complete(summary)
