"""Memory that processes of one machine hand to each other: files without a name, sent as descriptors.

Allocating new pages, or mapping existing ones anew, takes several times as long as copying their content. So a
process writes again to files that nobody reads any more (`Reused`), and a reader gets copies, made from mappings that
it keeps (`Mappings`).
"""

from __future__ import annotations

import itertools
import mmap
import os
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

_ALIGNED = 64
_MOST_SPARE = 4  # files that are kept to be written to again
_MOST_MAPPED = 64  # files of others that stay mapped
_MOST_MAPPED_BYTES = 2**26
_ONCE = -1


def aligned(place: int) -> int:
    """Return the first multiple of the alignment of arrays that is not below `place`."""
    return -(-place // _ALIGNED) * _ALIGNED


def room(size: int) -> memoryview:
    """Return new memory of `size` bytes that is aligned for arrays."""
    found = np.empty(size + _ALIGNED, np.uint8)
    begin = -found.ctypes.data % _ALIGNED
    return found[begin : begin + size].data


class Memory:
    """A file without a name; its maker gives it a `number` if it will write to it again."""

    def __init__(self, file: int, number: int = _ONCE) -> None:
        self.file = file
        self.number = number
        weakref.finalize(self, os.close, file)

    @classmethod
    def new(cls, size: int, number: int = _ONCE) -> Memory:
        """Return memory of `size` bytes. Raises OSError if there is none, or no descriptor left."""
        memory = cls(os.memfd_create("fedactors"), number)
        os.posix_fallocate(memory.file, 0, size)
        return memory

    @property
    def again(self) -> bool:
        """Whether its maker will write to it again once it is given back."""
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
    """Mappings of the memory that was read last: the same memory is likely to come again with other content."""

    def __init__(self) -> None:
        self._kept = OrderedDict[tuple[int, int], mmap.mmap]()  # by file system and number in it
        self._bytes = 0

    def read(self, memory: Memory, begin: int, end: int) -> memoryview:
        """Return a copy of the bytes from `begin` to `end`. Raises ValueError if there are fewer."""
        with memoryview(self._of(memory)) as whole:
            if not 0 <= begin <= end <= len(whole):
                raise ValueError(f"bytes {begin} to {end} of a memory of {len(whole)} bytes")
            found = room(end - begin)
            found[:] = whole[begin:end]
        return found

    def _of(self, memory: Memory) -> mmap.mmap:
        facts = os.fstat(memory.file)
        key = (facts.st_dev, facts.st_ino)  # unique as long as the mapping is kept
        if key not in self._kept:
            self._kept[key] = mmap.mmap(memory.file, 0, prot=mmap.PROT_READ)
            self._bytes += facts.st_size
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and (len(self._kept) > _MOST_MAPPED or self._bytes > _MOST_MAPPED_BYTES):
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest)
            oldest.close()
        return self._kept[key]


class Reused:
    """Memory of one process, which it writes to again after its number was given back."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._lent: dict[int, tuple[Memory, int]] = {}  # with its size
        self._spare: list[tuple[Memory, int]] = []

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
        """Make the memory of these numbers spare: its content is not needed any more."""
        self._spare += [self._lent.pop(number) for number in numbers]
        del self._spare[:-_MOST_SPARE]
