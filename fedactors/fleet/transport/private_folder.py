"""A folder in which only this user can make, rename or remove files: the place of the driver's socket.

Who can rename a socket can put another one in its place. So the folder is made by this process under a parent that
nobody else can write to, or where others cannot rename what is not theirs (the sticky bit of /tmp), and both sides
check owner and mode before they use it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from fedactors.errors import ClusterError

LONGEST_PATH = 107  # bytes of a Unix socket's path, on Linux
_LONGEST_PARENT = LONGEST_PATH - 30  # the folder's own name and the socket's come behind it
_SHORT = "/tmp"
_OTHERS = 0o077
_WRITABLE_BY_OTHERS = 0o022


class UnsafeFolderError(Exception):
    """A folder can be changed by other users."""


def private_folder(socket_name: str) -> Path:
    """Return a new folder of this user's own for a socket of that name.

    It is under XDG_RUNTIME_DIR if that is private to this user, else under the folder for temporary files. Raises
    ClusterError if neither is safe, or the socket's path would be too long.
    """
    parent = _parent()
    try:
        folder = Path(tempfile.mkdtemp(prefix="fedactors-", dir=parent))  # with mode 0700
    except OSError as error:
        raise ClusterError(f"no folder for a socket under {parent}: {error} (accepted: set TMPDIR)") from None
    try:
        folder.chmod(0o700)
        check_private(folder)
        path = os.fsencode(folder / socket_name)
        if len(path) > LONGEST_PATH:
            raise ClusterError(
                f"{os.fsdecode(path)}: the path of a socket has {len(path)} bytes"
                f" (accepted: up to {LONGEST_PATH}; set XDG_RUNTIME_DIR or TMPDIR to a folder with a shorter path)"
            )
    except BaseException:
        folder.rmdir()
        raise
    return folder


def check_private(folder: Path) -> None:
    """Raise UnsafeFolderError unless `folder` is a folder, no link, of this user, that nobody else has access to."""
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        raise UnsafeFolderError(f"{folder} is no folder")
    if facts.st_uid != os.geteuid():
        raise UnsafeFolderError(f"{folder} belongs to user {facts.st_uid}, not to user {os.geteuid()}")
    if facts.st_mode & _OTHERS:
        raise UnsafeFolderError(f"{folder} has mode {stat.S_IMODE(facts.st_mode):04o} (accepted: 0700)")


def _parent() -> Path:
    """Return where to make the folder. Raises ClusterError if others could rename it there."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and _is_private(Path(runtime)):
        return Path(runtime)
    parent = Path(tempfile.gettempdir()).resolve()
    if len(os.fsencode(parent)) > _LONGEST_PARENT and os.access(_SHORT, os.W_OK | os.X_OK):
        parent = Path(_SHORT).resolve()
    for folder in (parent, *parent.parents):
        facts = folder.stat()
        open_to_others = facts.st_mode & _WRITABLE_BY_OTHERS and not facts.st_mode & stat.S_ISVTX
        if facts.st_uid not in (0, os.geteuid()) or open_to_others:
            raise ClusterError(
                f"{folder}: other users can rename what is in it, so that no socket may be made in {parent}"
                " (accepted: set XDG_RUNTIME_DIR or TMPDIR to a folder of your own)"
            )
    return parent


def _is_private(folder: Path) -> bool:
    try:
        check_private(folder)
    except (OSError, UnsafeFolderError):
        return False
    return folder.is_absolute()
