"""Values between processes of one machine: small ones inside a message, large ones in memory that both sides map.

A parcel is packed once and may be sent to several processes; none of them copies what is in it, and its memory is free
when the last one lets go of it. Arrays begin at multiples of 64 bytes, as in Ray's object store: bits of products may
depend on that.
"""

from __future__ import annotations

import errno
import mmap
import os
import pickle
import socket
import weakref
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

_INSIDE = 8192  # bytes that travel inside a message
_MESSAGE = 32_768  # bytes of a message: a socket takes several of them
_IN_MEMORY = b"m"  # stands for a message that is too long for a socket
_ALIGNED = 64
_MOST_FILES = 200  # of a message; Linux takes 253


class Memory:
    """A piece of memory that can be handed to another process: a file without a name."""

    def __init__(self, file: int) -> None:
        self.file = file
        weakref.finalize(self, os.close, file)

    @classmethod
    def of(cls, parts: Sequence[memoryview], places: Sequence[int], size: int) -> Memory:
        """Return memory with each of `parts` at its place."""
        memory = cls(os.memfd_create("fedactors"))
        os.ftruncate(memory.file, size)
        for part, place in zip(parts, places, strict=True):
            written = os.pwrite(memory.file, part, place)
            while written < part.nbytes:  # more than 2 GB
                written += os.pwrite(memory.file, part[written:], place + written)
        return memory

    def view(self) -> memoryview:
        """Return the memory, which stays as long as somebody refers to it. Whoever does write to it has a copy."""
        return memoryview(mmap.mmap(self.file, 0, access=mmap.ACCESS_COPY)).toreadonly()


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
            size = _aligned(ends[-1][1])
        if size > _INSIDE:
            return cls(tuple(ends), Memory.of(parts, [begin for begin, _ in ends], size))
        content = bytearray(size)
        for part, (begin, end) in zip(parts, ends, strict=True):
            content[begin:end] = part
        return cls(tuple(ends), bytes(content))

    def open(self) -> Any:
        """Return the value; arrays in it may not be written to."""
        content = self.content.view() if isinstance(self.content, Memory) else _copied(self.content)
        head, *buffers = (content[begin:end] for begin, end in self.ends)
        return pickle.loads(head, buffers=buffers)


def send(line: socket.socket, message: tuple[Any, ...], parcels: Sequence[Parcel] = ()) -> None:
    """Send a message of plain values, and parcels beside it.

    Raises ConnectionError if nobody is there, BlockingIOError if the socket should not wait and has no room, OSError
    if there is no memory or no descriptor left.
    """
    large = [parcel for parcel in parcels if isinstance(parcel.content, Memory)]
    if len(large) > _MOST_FILES:
        parcels = _together([*parcels])
    memories = [parcel.content for parcel in parcels if isinstance(parcel.content, Memory)]
    files = list({id(memory): memory for memory in memories}.values())
    places = {id(memory): place for place, memory in enumerate(files)}
    packed = [(p.ends, places.get(id(p.content), p.content)) for p in parcels]
    data = pickle.dumps((message, packed))
    if len(data) > _MESSAGE:
        files.append(Memory.of([memoryview(data)], [0], len(data)))
        data = _IN_MEMORY
    socket.send_fds(line, [data], [memory.file for memory in files])


def receive(line: socket.socket) -> tuple[tuple[Any, ...], list[Parcel]] | None:
    """Wait for a message; return it and its parcels, or None if the other side is gone.

    Raises OSError if this process has no descriptors left for what came, BlockingIOError if nothing did and the socket
    should not wait.
    """
    try:
        data, files, flags, _ = socket.recv_fds(line, _MESSAGE, _MOST_FILES + 1, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None
    memories = [Memory(file) for file in files]
    if flags & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
        raise OSError(errno.EMFILE, "a message came without all of its memory: too many open files")
    if not data:
        return None
    message, packed = pickle.loads(memories[-1].view() if data == _IN_MEMORY else data)
    return message, [Parcel(ends, memories[what] if isinstance(what, int) else what) for ends, what in packed]


def _together(parcels: Sequence[Parcel]) -> list[Parcel]:
    """Return the same parcels, all in one memory."""
    contents = [p.content.view() if isinstance(p.content, Memory) else memoryview(p.content) for p in parcels]
    places = [0, *accumulate(_aligned(content.nbytes) for content in contents)]
    memory = Memory.of(contents, places[:-1], places[-1])
    return [
        Parcel(tuple((place + begin, place + end) for begin, end in parcel.ends), memory)
        for parcel, place in zip(parcels, places[:-1], strict=True)
    ]


def _aligned(place: int) -> int:
    """Return the first place from there on where an array may begin."""
    return -(-place // _ALIGNED) * _ALIGNED


def _copied(content: bytes) -> memoryview:
    """Return a copy that begins where arrays should, and that nobody can write to."""
    room = np.empty(len(content) + _ALIGNED, np.uint8)
    begin = -room.ctypes.data % _ALIGNED
    found = room[begin : begin + len(content)]
    found[:] = np.frombuffer(content, np.uint8)
    return found.data.toreadonly()
