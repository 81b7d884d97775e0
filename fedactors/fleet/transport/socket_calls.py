"""Calls to actors of this machine, over sockets: Ray's own take longer than a round of a small model.

    call(line, method, args)   queued here, sent in order, each when the replies among its `args` are there
    the actor                  answers one call after the other with what it returned, see `near_answers`
    a reply                    stays here, packed, as long as somebody refers to it, and is handed on as it is; then
                               the actor is told, with a call, that it may write to that memory again

So an actor that dies takes nothing along but what it was working on. Its end is the end of its line: what was asked on
it fails, and what waits for that. To start, place, watch and restart processes is Ray's.

One thread has the lines, and nobody else touches them: others leave it notes of what is to be done. So nothing is
locked, and a signal that interrupts the main thread finds nothing half done.
"""

from __future__ import annotations

import itertools
import os
import selectors
import socket
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias

from fedactors.fleet.base import Fault
from fedactors.fleet.transport.shared_buffers import SharedBuffer, lent, receive, send

POSSIBLE = hasattr(os, "memfd_create")
_AHEAD = 4  # calls that an actor is sent before it has answered: it need not wait for the next one
_READ, _BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE


class ChannelClosed(NamedTuple):
    """What comes in the place of an answer when the line ends first."""

    served: Any  # whatever tells why the process does not listen any more
    fault: Fault | None  # why this side has ended it


Answer: TypeAlias = SharedBuffer | Fault | ChannelClosed


class Reply:
    """What a call will return; `answer` is None until `there` is set."""

    __slots__ = ("answer", "there", "waiting")

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer, self.there = answer, threading.Event()
        self.waiting: list[Channel] = []  # lines on which calls wait for this
        if answer is not None:
            self.there.set()


class _Call:
    """A call on its way."""

    __slots__ = ("fault", "method", "needs", "number", "places", "plain", "replies")

    def __init__(self, number: int, method: str, args: Sequence[Any], returns: int) -> None:
        self.number, self.method = number, method
        self.fault: Fault | None = None  # why it could not be sent
        self.places = [place for place, arg in enumerate(args) if isinstance(arg, Reply)]
        self.plain = SharedBuffer.of([None if isinstance(arg, Reply) else arg for arg in args])
        self.needs: list[Reply] = [args[place] for place in self.places]
        self.replies = [Reply() for _ in range(returns)]


class Channel:
    """The way to a process of an actor; it ends with the process."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.served: Any = None
        self.ended: ChannelClosed | None = None
        self.socket: socket.socket | None = None  # when the process has taken it up
        self.queued, self.sent = deque[_Call](), deque[_Call]()
        self.read = deque[int]()  # memory of the process that nobody needs any more, by its numbers


class SocketCalls:
    """The ends of all lines in one process; `path` is where it listens, to processes of its user."""

    def __init__(self, path: Path) -> None:
        self.path, self._closed = path, False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        path.chmod(0o600)  # before anybody can connect
        self._listener.listen(128)
        self._numbers, self._lines = itertools.count(), dict[int, Channel]()
        self._notes = SimpleQueue[Callable[[], None]]()
        self._waker, self._woken = socket.socketpair()
        for one in (self._listener, self._waker, self._woken):
            one.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, _READ, self._accept)
        self._selector.register(self._woken, _READ, self._wake)
        self._thread = threading.Thread(target=self._attend, name="near calls", daemon=True)
        self._thread.start()

    def line(self) -> Channel:
        """Return a new line, for `answer` to take up by its number. Calls may be made at once."""
        line = Channel(next(self._numbers))
        self._note(partial(self._lines.__setitem__, line.number, line))
        return line

    def call(self, line: Channel, method: str, args: Sequence[Any], returns: int) -> list[Reply]:
        """Ask an actor; `args` may hold replies to other calls."""
        call = _Call(next(self._numbers), method, args, returns)
        self._note(partial(self._ask, line, call))
        return call.replies

    def end(self, line: Channel) -> None:
        """End a line: its process is gone, or not wanted any more."""
        self._note(partial(self._end, line, None))

    def close(self) -> None:
        """End all lines, and listen no more."""
        if self._thread.is_alive():
            self._note(self._finish)
            self._thread.join()
        self.path.unlink(missing_ok=True)

    def _note(self, what: Callable[[], None]) -> None:
        """Leave a note for the thread that has the lines."""
        self._notes.put(what)
        with suppress(OSError):  # it has been woken often enough, or everything is closed
            self._waker.send(b"\0")

    def _attend(self) -> None:
        """Do what is noted, and take in what comes, until `close`."""
        while not self._closed:
            for key, events in self._selector.select():
                if not self._closed:  # by one that came before it
                    key.data(events)

    def _wake(self, _: int) -> None:
        with suppress(BlockingIOError):
            while self._woken.recv(1024):
                continue
        while not self._notes.empty():
            self._notes.get()()

    def _finish(self) -> None:
        for line in list(self._lines.values()):
            self._end(line, None)
        strangers = [key.fileobj for key in list(self._selector.get_map().values())]
        self._selector.close()
        for one in {*strangers, self._waker}:
            one.close()  # type: ignore[union-attr]
        self._closed = True

    def _accept(self, _: int) -> None:
        with suppress(OSError):  # it was gone again, or there is no descriptor left: it will be told by its silence
            found, _address = self._listener.accept()
            found.setblocking(False)
            self._selector.register(found, _READ, partial(self._greet, found))

    def _greet(self, found: socket.socket, _: int) -> None:
        """Learn which line a process takes up."""
        line = None
        with suppress(Exception):  # whoever does not say it in our way is sent away
            hello = receive(found)
            line = self._lines.get(hello[0][0]) if hello else None
        if line is None or line.socket is not None:
            self._selector.unregister(found)
            found.close()
            return
        line.socket = found
        self._selector.modify(found, _READ, partial(self._serve, line))
        self._go_on([line])

    def _serve(self, line: Channel, events: int) -> None:
        """Take in an answer, or send what did not fit into the socket before."""
        try:
            if events & selectors.EVENT_WRITE and line.socket is not None:
                self._selector.modify(line.socket, _READ, partial(self._serve, line))
                self._go_on([line])
            if events & selectors.EVENT_READ and line.socket is not None:
                self._take(line, line.socket)
        except Exception as error:  # whatever it was, nobody knows what the next answer would belong to
            self._end(line, Fault(type(error).__name__, f"{error}, in what an actor answered", died=True))

    def _take(self, line: Channel, found: socket.socket) -> None:
        try:
            taken = receive(found)
        except BlockingIOError:
            return
        if taken is None:
            self._end(line, None)
            return
        (number, raised), parcels = taken
        call = line.sent[0]
        if number != call.number:
            raise RuntimeError(f"answer {number} came to call {call.number}")
        for memory in lent(parcels):
            weakref.finalize(memory, line.read.append, memory.number)
        waited = _settle(call, parcels if raised is None else [Fault(*raised)] * len(call.replies))
        line.sent.popleft()
        self._go_on([line, *waited])

    def _ask(self, line: Channel, call: _Call) -> None:
        line.queued.append(call)
        for need in call.needs:
            if need.answer is None:
                need.waiting.append(line)
        self._go_on([line])

    def _end(self, line: Channel, fault: Fault | None) -> None:
        if line.ended is not None:
            return
        line.ended = ChannelClosed(line.served, fault)
        self._lines.pop(line.number, None)
        if line.socket is not None:
            self._selector.unregister(line.socket)
            line.socket.close()
            line.socket = None
        self._go_on([line])

    def _go_on(self, lines: Sequence[Channel]) -> None:
        """Send what can be sent on `lines`, and on those whose calls waited for what turns out to have failed."""
        todo = deque(lines)
        while todo:
            todo += self._advance(todo.popleft())

    def _advance(self, line: Channel) -> list[Channel]:
        """Send calls of a line as far as they can be, and fail what never can; return the lines that wait for that."""
        waited = list[Channel]()
        if line.ended is not None:
            for call in (*line.sent, *line.queued):
                waited += _settle(call, [line.ended] * len(call.replies))
            line.sent.clear()
            line.queued.clear()
        while line.queued:
            call = line.queued[0]
            failed = next((need.answer for need in call.needs if isinstance(need.answer, Fault | ChannelClosed)), None)
            if failed is None:
                if not self._sent(line, call):
                    break
                failed = call.fault
            line.queued.popleft()
            if failed is not None:
                waited += _settle(call, [failed] * len(call.replies))
        return waited

    def _sent(self, line: Channel, call: _Call) -> bool:
        """Send a call, or note its fault if it cannot be sent at all; return False if it has to wait."""
        parcels = [need.answer for need in call.needs if isinstance(need.answer, SharedBuffer)]
        if line.socket is None or len(line.sent) >= _AHEAD or len(parcels) < len(call.needs):
            return False
        read = [line.read.popleft() for _ in range(len(line.read))]
        try:
            asked = call.number, call.method, call.places, len(call.replies), read
            send(line.socket, asked, [call.plain, *parcels])
        except BlockingIOError:  # as soon as there is room
            self._selector.modify(line.socket, _BOTH, partial(self._serve, line))
        except ConnectionError:  # its end is about to be taken in
            pass
        except (OSError, ValueError) as error:
            call.fault = Fault(type(error).__name__, f"{error}, in asking an actor to {call.method}")
        else:
            line.sent.append(call)  # with what it needs, which nobody may write to before there is an answer
            return True
        line.read.extendleft(reversed(read))
        return call.fault is not None


def _settle(call: _Call, answers: Sequence[Answer]) -> list[Channel]:
    """Note what came of a call; return the lines on which that was waited for."""
    waited = list[Channel]()
    for reply, answer_ in zip(call.replies, answers, strict=True):
        reply.answer = answer_
        reply.there.set()
        waited += reply.waiting
        reply.waiting = []
    return waited
