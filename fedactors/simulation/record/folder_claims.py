"""Which process a run folder belongs to: who takes a folder holds a lock on its file of metrics until it ends."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from io import FileIO
from itertools import count
from pathlib import Path

from fedactors.errors import FolderAccessError
from fedactors.run_files.files import METRICS, inaccessible, kind_of, problem, reading
from fedactors.run_files.locks import lock
from fedactors.run_files.writer_note import WRITER, forget_writer, writer_of
from fedactors.run_files.writing import appending, remove
from fedactors.simulation.record.taken_folder import taken

_PENDING = re.compile(r"\..*\.part")  # the name of a file that is not yet whole


def claim(metrics: FileIO, path: Path) -> bool:
    """Hold the folder `path` until its file of `metrics` is closed; return False where the file system has no locks.

    Raises FolderAccessError if another process holds it.
    """
    with _refused(path):
        return lock(metrics)


def refuse_claimed(path: Path) -> bool:
    """Raise RunFolderError if another process is writing to the folder `path`, or if its metrics are no file.

    Returns whether nobody is: that is not known where there are no metrics, or the file system has no locks.
    """
    if not os.path.lexists(path / METRICS):
        return False
    with reading(path / METRICS) as file, _refused(path):
        return lock(file, shared=True)


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
    """Raise RunFolderError if `path` cannot become a run folder: it holds something, or is none and cannot be made.

    What a run has left that ended before it wrote its scenario is nothing, where locks tell that it has ended.
    """
    _left_unbegun(path)


def _left_unbegun(path: Path) -> bool:
    """Return whether the folder `path` holds what a run has left that never began. Raises as `check_free`."""
    try:
        _refuse_other_kinds(path)
        if not (path.exists() and any(path.iterdir())):
            return False
        if refuse_claimed(path) and _never_begun(path):
            return True
        raise taken(path)
    except OSError as error:
        raise inaccessible(path, "cannot be a run folder", error) from None


def new_metrics(path: Path) -> FileIO:
    """Make a new folder, or take one whose run never began, and return its file of metrics.

    Raises as `check_free`, FileExistsError if it is another's: of two runs that begin at once, one is refused.
    """
    left = _left_unbegun(path)
    path.mkdir(parents=True, exist_ok=True)
    return appending(path / METRICS, new=not left)


def claim_new(metrics: FileIO, path: Path) -> bool:
    """Claim a folder for a new run. Raises as `claim`, FileExistsError if another run has begun there meanwhile."""
    locked = claim(metrics, path)
    if not (os.fstat(metrics.fileno()).st_nlink and _never_begun(path)):  # else a run that failed has removed it
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    return locked


def leave(path: Path) -> None:
    """Remove from a folder that was claimed what is its writer's alone; all, if it failed before its scenario."""
    forget_writer(path)
    if path.is_dir() and _never_begun(path):
        for name in (WRITER, METRICS):
            remove(path / name)


def _never_begun(path: Path) -> bool:
    """Whether a folder holds only what a run makes before its scenario: metrics without a line, a note of its writer.

    A run that was killed then leaves that: there is nothing to go on with.
    """
    kept = [one for one in path.iterdir() if not (one.name == WRITER or _PENDING.fullmatch(one.name))]
    return [one.name for one in kept] == [METRICS] and kept[0].lstat().st_size == 0


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
