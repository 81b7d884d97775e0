"""Locks on open files: where the file system has none, the caller is told so.

NFS gives an exclusive lock on a file that is open for writing only, and a shared one on a file that is open for reading
(`man 2 flock`).
"""

from __future__ import annotations

import errno
import fcntl
from io import FileIO
from typing import BinaryIO

# Lustre without `-o flock`, some file systems of users; NFS without its lock service
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)


def lock(file: FileIO | BinaryIO, *, shared: bool = False) -> bool:
    """Lock a file until it is closed; return False where the file system has no locks.

    A `shared` lock excludes others that are not, and the file is open for reading; else it is open for writing.
    Raises BlockingIOError if another process holds a lock that excludes this one.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True
