"""Which process a run folder belongs to: who takes a folder holds a lock on its file of metrics until it ends."""

from __future__ import annotations

import fcntl
import os
from datetime import datetime
from io import FileIO
from itertools import count
from pathlib import Path
from typing import BinaryIO, TypeVar

from fedactors.errors import FolderAccessError
from fedactors.run_files.files import METRICS, inaccessible, reading
from fedactors.run_files.writer_note import writer_of
from fedactors.simulation.record.taken_folder import taken

_File = TypeVar("_File", FileIO, BinaryIO)


def claim(file: _File, path: Path) -> _File:
    """Hold the folder for as long as this process lives. Raises FolderAccessError if another one does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise FolderAccessError(
            f"{path}: {writer_of(path)} is writing to this folder (accepted: wait until it has ended)"
        ) from None
    return file


def refuse_claimed(path: Path) -> None:
    """Raise RunFolderError if another process is writing to the folder `path`, or if its metrics are no file."""
    if os.path.lexists(path / METRICS):
        with reading(path / METRICS) as file:
            claim(file, path)


def check_free(path: Path) -> None:
    """Raise RunFolderError if `path` cannot become a run folder: it holds something, or is none and cannot be made."""
    try:
        if path.exists() and any(path.iterdir()):
            refuse_claimed(path)
            raise taken(path)
    except OSError as error:
        raise inaccessible(path, "cannot be a run folder", error) from None


def new_path(name: str, root: Path = Path("runs")) -> Path:
    """Make an empty folder for a run that starts now: runs/NAME-YYYYMMDD-HHMMSS, with a number if that exists."""
    stem = f"{name}-{datetime.now().strftime('%Y%m%d-%H%M%S')}"
    for number in count():
        path = root / (f"{stem}-{number}" if number else stem)
        try:
            path.mkdir(parents=True)  # of two commands in one second, one makes it and the other goes on
        except FileExistsError:
            continue
        except OSError as error:
            raise inaccessible(path, "cannot be made", error) from None
        return path
    raise AssertionError("there is always another number")
