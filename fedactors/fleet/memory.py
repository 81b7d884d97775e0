"""Memory that processes of one machine hand to each other: files without a name, by their descriptors.

To the system new pages cost several times what it costs to fill them, so a process writes again to files in which
nobody reads any more (`Reused`), and who reads one copies what is in it instead of mapping it.
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Iterable, Sequence

import numpy as np

_ALIGNED = 64
_SPARE = 4  # files that are kept to be written to again
_ONCE = -1


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
        """Return memory for `size` bytes. Raises OSError if there is none, or no descriptor left."""
        memory = cls(os.memfd_create("fedactors"), number)
        os.ftruncate(memory.file, size)
        return memory

    @property
    def again(self) -> bool:
        """Whether its maker waits for it to be given back."""
        return self.number != _ONCE

    def write(self, parts: Sequence[memoryview], places: Sequence[int]) -> None:
        """Write each of `parts` at its place."""
        for part, place in zip(parts, places, strict=True):
            written = 0
            while written < part.nbytes:  # more than 2 GB are written in pieces
                written += os.pwrite(self.file, part[written:], place + written)

    def read(self, begin: int, end: int) -> memoryview:
        """Return a copy of the bytes from `begin` to `end`."""
        found, done = room(end - begin), 0
        while done < end - begin:
            got = os.preadv(self.file, [found[done:]], begin + done)
            if not got:
                raise EOFError(f"memory ends at {begin + done}, before {end}")
            done += got
        return found


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
