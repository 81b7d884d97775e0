"""Memory that processes of one machine hand to each other: files without a name, by their descriptors.

To the system new pages, and new mappings of old ones, cost several times what it costs to copy what is in them. So a
process writes again to files in which nobody reads any more (`Reused`), and who reads has copies, made from mappings
that it keeps (`Mappings`).
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np

_ALIGNED = 64
_SPARE = 4  # files that are kept to be written to again
_MAPPED, _MAPPED_BYTES = 64, 2**26  # files of others that stay mapped, at most
_ONCE = -1
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h has them
_KEPT, _LARGE = 2**28, 2**25  # bytes that a process keeps at most, and of what is given back nevertheless


def keep_freed() -> None:
    """Have this process keep memory that it frees for what it needs next, where the C library can be told to."""
    with suppress(AttributeError, OSError, TypeError):  # elsewhere there is none
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)


def aligned(place: int) -> int:
    """Return the first place from there on where an array may begin."""
    return -(-place // _ALIGNED) * _ALIGNED


def room(size: int) -> memoryview:
    """Return new memory that begins where arrays should."""
    found = np.empty(size + _ALIGNED, np.uint8)
    begin = -found.ctypes.data % _ALIGNED
    return found[begin : begin + size].data


class Memory:
    """A file without a name; `number` is by what its maker knows it, if it will be written to again."""

    def __init__(self, file: int, number: int = _ONCE) -> None:
        self.file, self.number = file, number
        weakref.finalize(self, os.close, file)

    @classmethod
    def new(cls, size: int, number: int = _ONCE) -> Memory:
        """Return memory of `size` bytes. Raises OSError if there is none, or no descriptor left."""
        memory = cls(os.memfd_create("fedactors"), number)
        os.posix_fallocate(memory.file, 0, size)
        return memory

    @property
    def again(self) -> bool:
        """Whether its maker waits for it to be given back."""
        return self.number != _ONCE

    @cached_property
    def mapping(self) -> mmap.mmap:
        """The memory itself, for its maker."""
        return mmap.mmap(self.file, 0)

    def write(self, parts: Sequence[memoryview], places: Sequence[int]) -> None:
        """Write each of `parts` at its place."""
        with memoryview(self.mapping) as whole:
            for part, place in zip(parts, places, strict=True):
                whole[place : place + part.nbytes] = part


class Mappings:
    """The memory that was read last, mapped: it is likely to come again, with something else in it."""

    def __init__(self) -> None:
        self._kept = OrderedDict[tuple[int, int], mmap.mmap]()  # by file system and number in it
        self._bytes = 0

    def read(self, memory: Memory, begin: int, end: int) -> memoryview:
        """Return a copy of the bytes from `begin` to `end`. Raises ValueError if there are fewer."""
        found = room(end - begin)
        with memoryview(self._of(memory)) as whole:
            found[:] = whole[begin:end]
        return found

    def _of(self, memory: Memory) -> mmap.mmap:
        facts = os.fstat(memory.file)
        key = facts.st_dev, facts.st_ino  # of nobody else as long as the mapping is kept
        if key not in self._kept:
            self._kept[key] = mmap.mmap(memory.file, 0, prot=mmap.PROT_READ)
            self._bytes += facts.st_size
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and (len(self._kept) > _MAPPED or self._bytes > _MAPPED_BYTES):
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest)
            oldest.close()
        return self._kept[key]


class Reused:
    """Memory of one process, which it writes to again when told that nobody needs any more what it has lent."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._lent, self._spare = dict[int, tuple[Memory, int]](), list[tuple[Memory, int]]()  # with their sizes

    def take(self, size: int) -> Memory:
        """Return memory for `size` bytes, lent until its number is given back."""
        found = next((one for one in self._spare if size <= one[1] <= 2 * size), None)
        if found is None:
            found = Memory.new(size, next(self._numbers)), size
        else:
            self._spare.remove(found)
        self._lent[found[0].number] = found
        return found[0]

    def give_back(self, numbers: Iterable[int]) -> None:
        """Note that nobody needs what was written to these."""
        self._spare += [self._lent.pop(number) for number in numbers]
        del self._spare[:-_SPARE]
