"""Calls to actors of this machine, over sockets: Ray's own take longer than a round of a small model.

    call(line, method, args)   queued here, sent in order, each when the results among its `args` are there
    the actor                  answers one call after the other with what it returned, see `answer`
    a result                   stays here, packed, as long as somebody refers to it, and is handed on as it is

So an actor that dies takes nothing along but what it was working on. Its end is the end of its line: what was asked on
it fails, and what waits for that. To start, place, watch and restart processes is Ray's.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedactors.fleet.fleet import CallError, Fault
from fedactors.fleet.parcels import Parcel, receive, send

_AHEAD = 4  # calls that an actor is sent before it has answered: so few do not fill a socket
POSSIBLE = hasattr(os, "memfd_create")


class Result:
    """What a call returns: nothing yet, then a parcel, or a fault, or the line that ended before it was there."""

    __slots__ = ("came", "waiting")

    def __init__(self) -> None:
        self.came: Parcel | Fault | Line | None = None
        self.waiting: list[Line] = []  # lines on which calls wait for this


class _Call:
    """A call on its way."""

    __slots__ = ("message", "needs", "plain", "results")

    def __init__(self, method: str, args: Sequence[Any], returns: int) -> None:
        places = [place for place, arg in enumerate(args) if isinstance(arg, Result)]
        self.message = (method, places, returns)
        self.plain = Parcel.of([None if isinstance(arg, Result) else arg for arg in args])
        self.needs = [args[place] for place in places]
        self.results = [Result() for _ in range(returns)]


class Line:
    """The way to a process of an actor; it ends with the process."""

    def __init__(self, number: int) -> None:
        self.number, self.ended = number, False
        self.served: Any = None  # whatever tells why it ended
        self.socket: socket.socket | None = None  # when the process has taken it up
        self.queued, self.sent = deque[_Call](), deque[_Call]()


class NearCalls:
    """The ends of all lines in one process; `path` is where it listens, to processes of its user."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        path.chmod(0o600)  # before anybody can connect
        self._listener.listen(128)
        self._numbers, self._lines = itertools.count(), dict[int, Line]()
        self._changed = threading.Condition(threading.RLock())
        self._threads = [threading.Thread(target=self._accept, name="near calls", daemon=True)]
        self._threads[0].start()

    def line(self) -> Line:
        """Return a new line, for `answer` to take up by its number. Calls may be made at once."""
        with self._changed:
            line = Line(next(self._numbers))
            self._lines[line.number] = line
        return line

    def call(self, line: Line, method: str, args: Sequence[Any], returns: int) -> list[Result]:
        """Ask an actor; `args` may hold results of other calls."""
        call = _Call(method, args, returns)
        with self._changed:
            line.queued.append(call)
            for need in call.needs:
                need.waiting.append(line)
            self._go_on([line])
        return call.results

    def wait(self, result: Result, seconds: float) -> Parcel | Fault | Line | None:
        """Return what came of a call, or None if nothing did for so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: result.came is not None, seconds)
            return result.came

    def end(self, line: Line) -> None:
        """End a line: its process is gone, or not wanted any more."""
        with self._changed:
            line.ended = True
            self._lines.pop(line.number, None)
            if line.socket is not None:
                with suppress(OSError):  # the other side was first
                    line.socket.shutdown(socket.SHUT_RDWR)
            self._go_on([line])

    def close(self) -> None:
        """End all lines, and listen no more."""
        for line in list(self._lines.values()):
            self.end(line)
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def _accept(self) -> None:
        """Have a thread attend to each process that calls, until `close`."""
        while True:
            try:
                found, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._attend, args=(found,), name="near calls", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _attend(self, found: socket.socket) -> None:
        """Take in the answers of a process, until its line ends."""
        with found:
            if (hello := receive(found)) is None or (line := self._lines.get(hello[0][0])) is None:
                return
            try:
                with self._changed:
                    line.socket = found
                    self._go_on([line])
                while (answer := receive(found)) is not None:
                    (raised,), parcels = answer
                    with self._changed:
                        call = line.sent.popleft()
                        came = parcels if raised is None else [Fault(*raised)] * len(call.results)
                        self._go_on([line, *self._settle(call, came)])
            finally:
                self.end(line)
                line.socket = None

    def _go_on(self, lines: Sequence[Line]) -> None:
        """Send what can be sent on `lines`, and on others whose calls wait for what turns out to have failed."""
        lines = list(lines)
        for line in lines:  # grows
            while line.ended and line.sent:
                lines += self._settle(call := line.sent.popleft(), [line] * len(call.results))
            while line.queued:
                call = line.queued[0]
                came = [need.came for need in call.needs]
                failed = line if line.ended else next((one for one in came if isinstance(one, Fault | Line)), None)
                if failed is not None:
                    line.queued.popleft()
                    lines += self._settle(call, [failed] * len(call.results))
                elif line.socket is None or len(line.sent) == _AHEAD or None in came:
                    break
                else:
                    line.sent.append(line.queued.popleft())
                    with suppress(OSError):  # the end of the line, which whoever attends to it finds out
                        send(line.socket, call.message, [call.plain, *came])
                    call.needs = []

    def _settle(self, call: _Call, came: Sequence[Parcel | Fault | Line]) -> list[Line]:
        """Note what came of a call; return the lines on which that was waited for."""
        waiting = list[Line]()
        for result, one in zip(call.results, came, strict=True):
            result.came = one
            waiting += result.waiting
            result.waiting = []
        self._changed.notify_all()
        return waiting


def answer(path: str, number: int, perform: Callable[[str, list[Any]], Any]) -> None:
    """Answer the calls on a line with what `perform(method, args)` returns, until the line ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(path)
        send(line, (number,))
        while (asked := receive(line)) is not None:
            (method, places, returns), (plain, *given) = asked
            opened = dict(zip(places, (parcel.open() for parcel in given), strict=True))
            args = [opened.get(place, arg) for place, arg in enumerate(plain.open())]
            parcels, found, raised = list[Parcel](), None, None
            try:
                found = perform(method, args)
                parcels = [Parcel.of(one) for one in (found if returns > 1 else [found])]
            except CallError as error:
                raised = (type(error).__name__, str(error))
            with suppress(BrokenPipeError):
                send(line, (raised,), parcels)
            del asked, plain, given, opened, args, found, parcels  # models are given back while nobody waits
