"""Values between processes of one machine: small ones inside a message, large ones in memory beside it.

A buffer is packed once and may be sent to several processes. Arrays begin at multiples of 64 bytes, as in Ray's object
store: bits of products may depend on that. Everything here unpickles, so it is used only between processes that have
authenticated each other.
"""

from __future__ import annotations

import errno
import pickle
import socket
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from fedactors.fleet.transport.memory_files import Mappings, Memory, Reused, aligned, room

_MOST_INSIDE = 8192  # bytes of a value that is sent inside a message
_MOST_MESSAGE = 32_768  # bytes of a message: a socket takes several of them
_MOST_IN_MEMORY = 2**30  # bytes of a message in memory: a million small values
_IN_MEMORY = b"m"  # begins a message that is in memory: a pickle begins with another byte
_LENGTH_BYTES = 8
_INCOMPLETE = int(socket.MSG_CTRUNC | socket.MSG_TRUNC)
MOST_FILES = 200  # of a message; Linux takes 253


class SharedBuffer(NamedTuple):
    """A value, packed."""

    ends: tuple[tuple[int, int], ...]  # (begin, end) of its parts: the pickle, and buffers outside it
    content: bytes | Memory

    @classmethod
    def of(cls, value: object, reused: Reused | None = None) -> SharedBuffer:
        """Pack a value, a large one into memory that is `reused`, if given. Raises whatever pickling it raises."""
        outside: list[pickle.PickleBuffer] = []
        parts = [memoryview(pickle.dumps(value, protocol=5, buffer_callback=outside.append))]
        parts += [buffer.raw() for buffer in outside]
        ends: list[tuple[int, int]] = []
        size = 0
        for part in parts:
            ends.append((size, size + part.nbytes))
            size = aligned(size + part.nbytes)
        begins = [begin for begin, _ in ends]
        if size > _MOST_INSIDE:
            return cls(tuple(ends), _written(parts, begins, size, reused))
        content = bytearray(size)
        for part, (begin, end) in zip(parts, ends, strict=True):
            content[begin:end] = part
        return cls(tuple(ends), bytes(content))

    def open(self, mappings: Mappings | None = None) -> Any:
        """Return the value; its arrays are read-only. A process that opens many buffers passes `mappings`."""
        begin = self.ends[0][0]
        content = self.copied(mappings).toreadonly()
        head, *buffers = (content[first - begin : last - begin] for first, last in self.ends)
        return pickle.loads(head, buffers=buffers)

    def copied(self, mappings: Mappings | None = None) -> memoryview:
        """Return a copy of the packed bytes, in memory that is aligned for arrays."""
        if isinstance(self.content, Memory):
            return (mappings or Mappings()).read(self.content, self.ends[0][0], self.ends[-1][1])
        found = room(len(self.content))
        found[:] = self.content
        return found


def lent(buffers: Iterable[SharedBuffer]) -> list[Memory]:
    """Return the memory of `buffers` that its maker will write to again once it is given back."""
    return [buffer.content for buffer in buffers if isinstance(buffer.content, Memory) and buffer.content.again]


def send(connection: socket.socket, message: tuple[Any, ...], buffers: Sequence[SharedBuffer] = ()) -> None:
    """Send a message of plain values, and buffers beside it.

    Raises ConnectionError if the other side has ended, BlockingIOError if the socket does not wait and has no room,
    OSError if there is no memory or no descriptor left.
    """
    if len(_memories(buffers)) > MOST_FILES:
        buffers = _together(buffers)
    files = list({id(memory): memory for memory in _memories(buffers)}.values())
    places = {id(memory): place for place, memory in enumerate(files)}
    packed = [(buffer.ends, places.get(id(buffer.content), buffer.content)) for buffer in buffers]
    data = pickle.dumps((message, [memory.number for memory in files], packed))
    if len(data) > _MOST_MESSAGE:
        whole = Memory.new(len(data))
        whole.write([memoryview(data)], [0])
        files.append(whole)
        data = _IN_MEMORY + len(data).to_bytes(_LENGTH_BYTES, "big")
    socket.send_fds(connection, [data], [memory.file for memory in files])


def receive(connection: socket.socket) -> tuple[tuple[Any, ...], list[SharedBuffer]] | None:
    """Wait for a message; return it and its buffers, or None if the other side has ended.

    Raises OSError if this process has no descriptors left for what came or the message is longer than allowed,
    BlockingIOError if nothing came and the socket does not wait.
    """
    try:
        data, files, flags, _ = socket.recv_fds(connection, _MOST_MESSAGE, MOST_FILES + 1, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None
    memories = [Memory(file) for file in files]
    if flags & _INCOMPLETE:
        raise OSError(errno.EMFILE, "a message came without all of its memory: too many open files")
    if not data:
        return None
    packed = _message_in(memories.pop(), data) if data.startswith(_IN_MEMORY) else memoryview(data)
    message, numbers, contents = pickle.loads(packed)
    for memory, number in zip(memories, numbers, strict=True):
        memory.number = number
    return message, [SharedBuffer(ends, memories[what] if isinstance(what, int) else what) for ends, what in contents]


def _message_in(memory: Memory, data: bytes) -> memoryview:
    """Return a message that is in memory. Raises OSError if it is longer than allowed."""
    size = int.from_bytes(data[len(_IN_MEMORY) :], "big")
    if size > _MOST_IN_MEMORY:
        raise OSError(errno.EMSGSIZE, f"a message of {size} bytes came (accepted: up to {_MOST_IN_MEMORY})")
    return Mappings().read(memory, 0, size)


def _memories(buffers: Iterable[SharedBuffer]) -> list[Memory]:
    """Return the memory of those `buffers` that have some."""
    return [buffer.content for buffer in buffers if isinstance(buffer.content, Memory)]


def _written(parts: Sequence[memoryview], begins: Sequence[int], size: int, reused: Reused | None) -> Memory:
    """Return memory of `size` bytes with `parts` in it."""
    memory = reused.take(size) if reused else Memory.new(size)
    try:
        memory.write(parts, begins)
    except BaseException:
        if reused:
            reused.give_back([memory.number])
        raise
    return memory


def _together(buffers: Sequence[SharedBuffer]) -> list[SharedBuffer]:
    """Return the same buffers, all in one memory."""
    contents = [buffer.copied() for buffer in buffers]
    places = [0, *accumulate(aligned(content.nbytes) for content in contents)]
    memory = Memory.new(places[-1])
    memory.write(contents, places[:-1])
    moves = [place - buffer.ends[0][0] for buffer, place in zip(buffers, places[:-1], strict=True)]
    return [
        SharedBuffer(tuple((begin + move, end + move) for begin, end in buffer.ends), memory)
        for buffer, move in zip(buffers, moves, strict=True)
    ]
