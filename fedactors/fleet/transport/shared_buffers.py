"""Values between processes of one machine: small ones inside a message, large ones in memory beside it.

A parcel is packed once and may be sent to several processes. Arrays begin at multiples of 64 bytes, as in Ray's object
store: bits of products may depend on that.
"""

from __future__ import annotations

import errno
import pickle
import socket
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from fedactors.fleet.transport.memory_files import Mappings, Memory, Reused, aligned, room

_INSIDE = 8192  # bytes that travel inside a message
_MESSAGE = 32_768  # bytes of a message: a socket takes several of them
_IN_MEMORY = b"m"  # stands for a message that is too long for a socket
MOST_FILES = 200  # of a message; Linux takes 253


class SharedBuffer(NamedTuple):
    """A value, packed."""

    ends: tuple[tuple[int, int], ...]  # (begin, end) of its parts: the pickle, and buffers outside it
    content: bytes | Memory

    @classmethod
    def of(cls, value: object, reused: Reused | None = None) -> SharedBuffer:
        """Pack a value, a large one into memory that is `reused`, if given. Raises whatever pickling it raises."""
        buffers: list[pickle.PickleBuffer] = []
        parts = [memoryview(pickle.dumps(value, protocol=5, buffer_callback=buffers.append))]
        parts += [buffer.raw() for buffer in buffers]
        ends, size = [], 0
        for part in parts:
            ends.append((size, size + part.nbytes))
            size = aligned(ends[-1][1])
        if size > _INSIDE:
            memory = reused.take(size) if reused else Memory.new(size)
            try:
                memory.write(parts, [begin for begin, _ in ends])
            except BaseException:
                if reused:
                    reused.give_back([memory.number])
                raise
            return cls(tuple(ends), memory)
        content = bytearray(size)
        for part, (begin, end) in zip(parts, ends, strict=True):
            content[begin:end] = part
        return cls(tuple(ends), bytes(content))

    def open(self, mappings: Mappings | None = None) -> Any:
        """Return the value; arrays in it may not be written to. Whoever opens many has `mappings`."""
        begin, content = self.ends[0][0], self.copied(mappings).toreadonly()
        head, *buffers = (content[first - begin : last - begin] for first, last in self.ends)
        return pickle.loads(head, buffers=buffers)

    def copied(self, mappings: Mappings | None = None) -> memoryview:
        """Return a copy of what is packed, in memory that begins where arrays should."""
        if isinstance(self.content, Memory):
            return (mappings or Mappings()).read(self.content, self.ends[0][0], self.ends[-1][1])
        found = room(len(self.content))
        found[:] = self.content
        return found


def lent(parcels: Iterable[SharedBuffer]) -> list[Memory]:
    """Return the memory of `parcels` that whoever packed them waits for."""
    return [parcel.content for parcel in parcels if isinstance(parcel.content, Memory) and parcel.content.again]


def send(line: socket.socket, message: tuple[Any, ...], parcels: Sequence[SharedBuffer] = ()) -> None:
    """Send a message of plain values, and parcels beside it.

    Raises ConnectionError if nobody is there, BlockingIOError if the socket should not wait and has no room, OSError
    if there is no memory or no descriptor left.
    """
    large = [parcel for parcel in parcels if isinstance(parcel.content, Memory)]
    if len(large) > MOST_FILES:
        parcels = _together([*parcels])
    memories = [parcel.content for parcel in parcels if isinstance(parcel.content, Memory)]
    files = list({id(memory): memory for memory in memories}.values())
    places = {id(memory): place for place, memory in enumerate(files)}
    packed = [(p.ends, places.get(id(p.content), p.content)) for p in parcels]
    data = pickle.dumps((message, [memory.number for memory in files], packed))
    if len(data) > _MESSAGE:
        whole = Memory.new(len(data))
        whole.write([memoryview(data)], [0])
        files.append(whole)
        data = _IN_MEMORY + len(data).to_bytes(8, "big")
    socket.send_fds(line, [data], [memory.file for memory in files])


def receive(line: socket.socket) -> tuple[tuple[Any, ...], list[SharedBuffer]] | None:
    """Wait for a message; return it and its parcels, or None if the other side is gone.

    Raises OSError if this process has no descriptors left for what came, BlockingIOError if nothing did and the socket
    should not wait.
    """
    try:
        data, files, flags, _ = socket.recv_fds(line, _MESSAGE, MOST_FILES + 1, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None
    memories = [Memory(file) for file in files]
    if flags & (socket.MSG_CTRUNC | socket.MSG_TRUNC):
        raise OSError(errno.EMFILE, "a message came without all of its memory: too many open files")
    if not data:
        return None
    packed = memoryview(data)
    if data.startswith(_IN_MEMORY):
        packed = Mappings().read(memories.pop(), 0, int.from_bytes(data[1:], "big"))
    message, numbers, parcels = pickle.loads(packed)
    for memory, number in zip(memories, numbers, strict=True):
        memory.number = number
    return message, [SharedBuffer(ends, memories[what] if isinstance(what, int) else what) for ends, what in parcels]


def _together(parcels: Sequence[SharedBuffer]) -> list[SharedBuffer]:
    """Return the same parcels, all in one memory."""
    contents = [parcel.copied() for parcel in parcels]
    places = [0, *accumulate(aligned(content.nbytes) for content in contents)]
    memory = Memory.new(places[-1])
    memory.write(contents, places[:-1])
    moves = [place - parcel.ends[0][0] for parcel, place in zip(parcels, places[:-1], strict=True)]
    return [
        SharedBuffer(tuple((begin + move, end + move) for begin, end in parcel.ends), memory)
        for parcel, move in zip(parcels, moves, strict=True)
    ]
