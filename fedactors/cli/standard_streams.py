"""What the command prints to: any encoding of a terminal, and streams that are closed or that nobody reads."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

_ERRORS = "backslashreplace"  # a character that the terminal does not have is shown by its number
_STANDARD = (0, 1, 2)


def prepare() -> None:
    """Make stdout and stderr take any text; put the null device in the place of one that is closed.

    A message that cannot be written is no reason to end a run: stderr drops it.
    """
    _open_closed()
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    raw = io.BufferedWriter(_UnheardFile(2, "wb", closefd=False))
    sys.stderr = io.TextIOWrapper(raw, encoding, _ERRORS, line_buffering=True)


def _open_closed() -> None:
    """Open descriptors 0 to 2 where they are closed: else the next file that is opened would be one of them."""
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


class _UnheardFile(io.FileIO):
    """A file whose reader may have ended, whose terminal may be closed, or whose disk may be full."""

    def write(self, content: Any, /) -> int:
        """Write `content`, or drop it if it cannot be written."""
        try:
            return super().write(content) or 0
        except OSError:
            return memoryview(content).nbytes
