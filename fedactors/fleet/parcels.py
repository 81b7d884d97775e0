"""Values between processes of one machine: small ones inside a message, large ones in memory that both sides map.

A parcel is packed once and may be sent to several processes; none of them copies what is in it, and its memory is free
when the last one lets go of it. Arrays begin at multiples of 64 bytes, as in Ray's object store: bits of products may
depend on that.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_INSIDE = 8192  # bytes that travel inside a message
_MESSAGE = 65_536  # bytes of a message, well below what a socket takes at once
_IN_MEMORY = b"m"  # stands for a message that is too long for a socket
_ALIGNED = 64
MOST_FILES = 250  # of a message; Linux takes 253


class Memory:
    """A piece of memory that can be handed to another process: a file without a name."""

    def __init__(self, file: int) -> None:
        self.file = file
        weakref.finalize(self, os.close, file)

    @classmethod
    def of(cls, parts: Sequence[Any], places: Sequence[int], size: int) -> Memory:
        """Return memory with each of `parts`, bytes-like, at its place."""
        memory = cls(os.memfd_create("fedactors"))
        os.ftruncate(memory.file, size)
        for part, place in zip(parts, places, strict=True):
            written = os.pwrite(memory.file, part, place)
            while written < len(part):  # more than 2 GB
                written += os.pwrite(memory.file, part[written:], place + written)
        return memory

    def view(self) -> memoryview:
        """Return the memory, to be read; it stays until nobody refers to it."""
        return memoryview(mmap.mmap(self.file, 0, prot=mmap.PROT_READ))


class Parcel(NamedTuple):
    """A value, packed."""

    ends: tuple[tuple[int, int], ...]  # (begin, end) of its parts: the pickle, and buffers outside it
    content: bytes | Memory

    @classmethod
    def of(cls, value: object) -> Parcel:
        """Pack a value. Raises whatever pickling it raises."""
        buffers: list[pickle.PickleBuffer] = []
        parts = [memoryview(pickle.dumps(value, protocol=5, buffer_callback=buffers.append))]
        parts += [buffer.raw() for buffer in buffers]
        ends, size = [], 0
        for part in parts:
            ends.append((size, size + part.nbytes))
            size = -(-ends[-1][1] // _ALIGNED) * _ALIGNED
        if size > _INSIDE:
            return cls(tuple(ends), Memory.of(parts, [begin for begin, _ in ends], size))
        content = bytearray(size)
        for part, (begin, end) in zip(parts, ends, strict=True):
            content[begin:end] = part
        return cls(tuple(ends), bytes(content))

    def open(self) -> Any:
        """Return the value; arrays in it may not be written to."""
        content = self.content.view() if isinstance(self.content, Memory) else _aligned(self.content)
        head, *buffers = (content[begin:end] for begin, end in self.ends)
        return pickle.loads(head, buffers=buffers)


def send(line: socket.socket, message: tuple[Any, ...], parcels: Sequence[Parcel] = ()) -> None:
    """Send a message of plain values, and parcels beside it. Raises OSError if nobody is there."""
    memories = [parcel.content for parcel in parcels if isinstance(parcel.content, Memory)]
    packed = [(p.ends, None if isinstance(p.content, Memory) else p.content) for p in parcels]
    data = pickle.dumps((message, packed))
    if len(data) > _MESSAGE:
        memories.append(Memory.of([data], [0], len(data)))
        data = _IN_MEMORY
    socket.send_fds(line, [data], [memory.file for memory in memories])


def receive(line: socket.socket) -> tuple[tuple[Any, ...], list[Parcel]] | None:
    """Wait for a message; return it and its parcels, or None if the other side is gone."""
    try:
        data, files, _, _ = socket.recv_fds(line, _MESSAGE, MOST_FILES, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None
    memories = [Memory(file) for file in files]
    if not data:
        return None
    message, packed = pickle.loads(memories.pop().view() if data == _IN_MEMORY else data)
    waiting = iter(memories)
    return message, [Parcel(ends, next(waiting) if inside is None else inside) for ends, inside in packed]


def _aligned(content: bytes) -> memoryview:
    """Return a copy that begins where arrays should, and that nobody can write to."""
    room = np.empty(len(content) + _ALIGNED, np.uint8)
    begin = -room.ctypes.data % _ALIGNED
    found = room[begin : begin + len(content)]
    found[:] = np.frombuffer(content, np.uint8)
    return found.data.toreadonly()
