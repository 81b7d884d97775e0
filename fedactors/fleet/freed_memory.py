"""The allocator of an actor's process keeps the memory that a step frees, for the step after it."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_LARGEST = 128 << 20  # bytes of a block, or of free memory at the heap's end, above which it goes back to the system
_ACCEPTED = 32 << 20  # the largest such block that any version of glibc accepts: older ones refuse what is larger
_TRIM_THRESHOLD = -1  # names of glibc's malloc.h
_MMAP_THRESHOLD = -3


def keep() -> None:
    """Keep freed blocks of up to 128 MiB, 32 in old versions of glibc; does nothing where the C library is another.

    Without it, the memory of a model's gradients, 45 MB for ResNet-18, goes back to the system after every step, which
    clears it before the next one: see benchmarks/NOTES.md.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        keep_in(library)


def keep_in(library: Any) -> None:
    """Tell glibc to keep freed blocks."""
    if not library.mallopt(_MMAP_THRESHOLD, _LARGEST):
        library.mallopt(_MMAP_THRESHOLD, _ACCEPTED)
    library.mallopt(_TRIM_THRESHOLD, _LARGEST)
