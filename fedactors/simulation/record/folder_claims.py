"""Which process a run folder belongs to: who takes a folder holds a lock on its file of metrics until it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from io import FileIO
from itertools import count
from pathlib import Path

from fedactors.errors import FolderAccessError
from fedactors.run_files.files import METRICS, inaccessible, kind_of, problem, reading
from fedactors.run_files.locks import lock
from fedactors.run_files.writer_note import writer_of
from fedactors.simulation.record.taken_folder import taken


def claim(metrics: FileIO, path: Path) -> bool:
    """Hold the folder `path` until its file of `metrics` is closed; return False where the file system has no locks.

    Raises FolderAccessError if another process holds it.
    """
    with _refused(path):
        return lock(metrics)


def refuse_claimed(path: Path) -> None:
    """Raise RunFolderError if another process is writing to the folder `path`, or if its metrics are no file."""
    if os.path.lexists(path / METRICS):
        with reading(path / METRICS) as file, _refused(path):
            lock(file, shared=True)


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """Say who holds the folder `path` where it cannot be locked. Raises FolderAccessError."""
    try:
        yield
    except BlockingIOError:
        raise FolderAccessError(
            f"{path}: {writer_of(path)} is writing to this folder (accepted: wait until it has ended)"
        ) from None


def check_free(path: Path) -> None:
    """Raise RunFolderError if `path` cannot become a run folder: it holds something, or is none and cannot be made."""
    try:
        _refuse_other_kinds(path)
        if path.exists() and any(path.iterdir()):
            refuse_claimed(path)
            raise taken(path)
    except OSError as error:
        raise inaccessible(path, "cannot be a run folder", error) from None


def _refuse_other_kinds(path: Path) -> None:
    """Raise RunFolderError if something else is at `path`, or where a folder above it has to be."""
    there = next((one for one in (path, *path.parents) if os.path.lexists(one)), path)
    if os.path.lexists(there) and not there.is_dir():
        found = kind_of(there.stat().st_mode) if there.exists() else "a link to nothing"
        raise problem(there, f"found {found}", "a folder, or nothing")


def new_path(name: str, root: Path = Path("runs")) -> Path:
    """Make an empty folder for a run that starts now: runs/NAME-YYYYMMDD-HHMMSS, with a number if that exists.

    Raises RunFolderError if it cannot be made.
    """
    path = root / f"{name}-{datetime.now().strftime('%Y%m%d-%H%M%S')}"
    try:
        _refuse_other_kinds(root)
        root.mkdir(parents=True, exist_ok=True)
        return _first_new(path)
    except OSError as error:
        raise inaccessible(path, "cannot be made", error) from None


def _first_new(path: Path) -> Path:
    """Make the folder `path`, or the first that is not there with a number behind its name."""
    for number in count():
        made = path.with_name(f"{path.name}-{number}") if number else path
        with suppress(FileExistsError):  # of two commands in one second, one makes it and the other goes on
            made.mkdir()
            return made
    raise AssertionError("there is always another number")
