"""Writes the files of a run folder. Other users may have put links there: nothing is written outside the folder.

A file is written under a name that cannot be foreseen, created for it alone, and renamed over its target: readers see
all of it or nothing, and a link in place of the target is replaced, not followed. What a writer that was killed has
left is removed by the next writer of the same target. Files that grow line by line must be regular files with one name.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from fedactors.run_files.files import inaccessible, kind_of, problem
from fedactors.run_files.locks import lock

_TOKEN = 8  # random bytes in the name of a file that is being written


class PendingFile:
    """A file that is being written beside its target, `file`; it appears under the target's name by `finish`.

    Args:
        path: the target.

    Raises RunFolderError if the target is a folder, OSError if the disk takes no file.

    """

    def __init__(self, path: Path) -> None:
        refuse_folder(path)
        _remove_leftovers(path)
        self._path = path
        self._pending, self.file = _created(path)

    def finish(self, *, sync: bool = False) -> None:
        """Rename the file over its target; with `sync`, its content reaches the disk before that, its name after it."""
        self.file.flush()
        if sync:
            os.fsync(self.file.fileno())
        self._pending.replace(self._path)
        self.file.close()
        if sync:
            sync_folder(self._path.parent)

    def discard(self) -> None:
        """Remove the file; its target stays as it was."""
        with suppress(OSError):  # of a disk that is full, closing fails again
            self.file.close()
        with suppress(OSError):
            self._pending.unlink(missing_ok=True)


def _created(path: Path) -> tuple[Path, BinaryIO]:
    """Create a file beside `path` and hold its lock, which tells other writers that it is in use."""
    while True:
        pending = _beside(path)
        descriptor = os.open(pending, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        file = os.fdopen(descriptor, "wb")
        with suppress(OSError):  # file systems without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:  # else another writer took it for a leftover before it was locked
            return pending, file
        file.close()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(_TOKEN)}.part")


def _leftover_names(name: str) -> re.Pattern[str]:
    """Return the pattern of names under which a target is written, whose own name is the pattern `name`."""
    return re.compile(rf"\.{name}\.[0-9a-f]{{{2 * _TOKEN}}}\.part")


def _remove_leftovers(path: Path) -> None:
    """Remove what writers of `path` left when they were killed: regular files that nobody holds the lock of."""
    names = _leftover_names(re.escape(path.name))
    for entry in os.scandir(path.parent):
        if names.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with suppress(OSError):  # it is in use, or gone
                descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                with os.fdopen(descriptor, "rb") as file:
                    if lock(file, shared=True):
                        os.unlink(entry.path)


@contextmanager
def replacing(path: Path, *, sync: bool = False) -> Iterator[BinaryIO]:
    """Give a file to write to, which replaces `path` at the end of the context; nothing changes after an exception.

    Raises RunFolderError if `path` is a folder, OSError if the disk does not take the file.
    """
    pending = PendingFile(path)
    try:
        yield pending.file
        pending.finish(sync=sync)
    except BaseException:
        pending.discard()
        raise


def write(path: Path, content: str | bytes) -> None:
    """Write a file so that it appears whole or not at all, and stays when the machine fails. Raises as `replacing`."""
    with replacing(path, sync=True) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_page(path: Path, text: str) -> Path:
    """Write a file for a person, and return its path. Raises RunFolderError if it cannot be written."""
    with writable(path), replacing(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # names of files may hold odd bytes
    return path


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Translate what the disk says against a file. Raises FolderAccessError in place of OSError."""
    try:
        yield
    except OSError as error:
        raise inaccessible(path, "cannot be written", error) from None


def appending(path: Path, *, new: bool = False) -> FileIO:
    """Return a file to append to, unbuffered; with `new` there must be none.

    Raises RunFolderError if it is no regular file, or has other names too; FileExistsError if it is not new.
    """
    if not new and os.path.lexists(path):
        _refuse_shared(path, path.lstat())
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_EXCL if new else 0)
    file = FileIO(os.open(path, flags, 0o666), "ab")
    try:
        _refuse_shared(path, os.fstat(file.fileno()))  # it may have been put there since the first look
    except BaseException:
        file.close()
        raise
    return file


def write_all(file: FileIO, content: bytes) -> None:
    """Write all of `content`: a disk that fills up takes part of it at first. Raises OSError if it takes no more."""
    while content:
        content = content[file.write(content) :]


def _refuse_shared(path: Path, found: os.stat_result) -> None:
    """Raise RunFolderError if what was found at `path` is not a regular file with one name."""
    if not stat.S_ISREG(found.st_mode):
        raise problem(path, f"found {kind_of(found.st_mode)}", "a file")
    if found.st_nlink != 1:
        raise problem(path, f"found a file with {found.st_nlink} names (hard links)", "a file with one name")


def refuse_folder(path: Path) -> None:
    """Raise RunFolderError if a file is to be written where a folder is."""
    if path.is_dir() and not path.is_symlink():
        raise problem(path, "found a folder", "a file, or nothing")


def refuse_linked(path: Path) -> None:
    """Raise RunFolderError if there is something at `path`, a folder inside a run folder, other than a folder."""
    if os.path.lexists(path) and not stat.S_ISDIR(mode := path.lstat().st_mode):
        raise problem(path, f"found {kind_of(mode)}", "a folder")


def inner_folder(path: Path) -> Path:
    """Return `path`, a folder inside a run folder, which is made if it is not there.

    Raises RunFolderError if it is a link or a file, OSError if it cannot be made.
    """
    refuse_linked(path)
    path.mkdir(exist_ok=True)
    return path


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder to write into, which replaces `path` at the end of the context.

    Nobody else can write into it until then. After an exception `path` is as it was, and what has been written is left
    to `remove_pending_folders`. Raises OSError if the disk takes no folder.
    """
    pending = _beside(path)
    pending.mkdir(mode=0o700)
    yield pending
    pending.chmod(stat.S_IMODE(path.parent.stat().st_mode))
    sync_folder(pending)
    remove(path)
    pending.rename(path)
    sync_folder(path.parent)


def remove_pending_folders(parent: Path, name: str) -> None:
    """Remove folders in `parent` that `replacing_folder` or `remove` has left, of targets whose names fit a pattern."""
    names = _leftover_names(name)
    for entry in os.scandir(parent):
        if names.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove what is at `path`, as far as that is possible: a folder with all it holds; of a link, only the link.

    A folder loses its name first, so that nobody takes what is left of it for the whole.
    """
    if path.is_dir() and not path.is_symlink():
        with suppress(OSError):
            path = path.rename(_beside(path))
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Have the names in a folder reach the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
