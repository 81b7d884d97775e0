"""The allocator of a worker's process keeps the memory that a step frees, for the step after it."""

from __future__ import annotations

import ctypes
import sys

_LARGEST = 128 << 20  # bytes of a block, or of free memory at the heap's end, above which it goes back to the system
_TRIM_THRESHOLD = -1  # names of glibc's malloc.h
_MMAP_THRESHOLD = -3


def keep() -> None:
    """Keep freed blocks of up to 128 MiB; does nothing where the C library is not glibc.

    Without it, the memory of a model's gradients, 45 MB for ResNet-18, goes back to the system after every step, which
    clears it before the next one: see benchmarks/NOTES.md.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
        library.mallopt(_TRIM_THRESHOLD, _LARGEST)
