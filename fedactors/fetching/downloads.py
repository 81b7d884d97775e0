"""One file by HTTP, whole and of the right checksum or not at all."""

from __future__ import annotations

import errno
import logging
import lzma
import socket
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedactors.errors import UsageError
from fedactors.extras import needed

PATIENCE = 60.0  # seconds without a byte
TRIES = 3
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError)  # of an archive


def download(address: str, path: Path, sha256: str, patience: float = PATIENCE) -> None:
    """Download a file to `path`, unless it is there already; nothing is left there if that fails.

    An empty `sha256` means that it is not known. Raises UsageError after a few tries.
    """
    pooch = needed("pooch", "fetch")
    pooch.get_logger().setLevel(logging.ERROR)
    _refuse_other(path, sha256)
    try:
        if path.exists():
            return
        pooch.core.stream_download(
            address,
            path,
            f"sha256:{sha256}" if sha256 else None,
            pooch.HTTPDownloader(timeout=patience),
            retry_if_failed=TRIES - 1,
        )
    except Exception as error:  # of requests, urllib3, pooch and the file system
        raise UsageError(f"{address}: not fetched: {reason(error)}") from error


def _refuse_other(path: Path, sha256: str) -> None:
    """Raise UsageError if another file is at `path`: it may be the user's own."""
    if not sha256 or not path.exists():
        return
    if needed("pooch", "fetch").file_hash(str(path)) != sha256:
        raise UsageError(
            f"{path}: is there already, and is not the file that would be fetched (accepted: move it away)"
        )


def unzip(path: Path, folder: Path) -> None:
    """Unpack an archive into `folder`. One that cannot be read is removed, leaves nothing, and UsageError says so.

    Raises UsageError, too, if the disk does not take what is in it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _read_through(archive)
            archive.extractall(folder)
    except _DAMAGED as error:
        path.unlink(missing_ok=True)
        raise UsageError(f"{path}: not a zip archive that can be read: {reason(error)}; removed") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be unpacked into {folder}: {error.strerror or error}") from error


def _read_through(archive: zipfile.ZipFile) -> None:
    """Read all that an archive holds, which compares checksums. Raises one of `_DAMAGED` if something is damaged."""
    try:
        damaged = archive.testzip()
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):
            raise
        raise zipfile.BadZipFile(str(error)) from error  # of bz2, or a place outside the file
    if damaged is not None:
        raise zipfile.BadZipFile(f"{damaged}: another checksum")


def reason(error: BaseException) -> str:
    """Return why a download failed, in one line."""
    return " ".join(str(error).split())[:400] or type(error).__name__


@contextmanager
def patient(seconds: float = PATIENCE) -> Iterator[None]:
    """Within it, a connection on which nothing comes for so long is an error, also for libraries that set no limit."""
    before: Any = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
