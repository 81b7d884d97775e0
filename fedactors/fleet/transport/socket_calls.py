"""The driver's side of all channels: calls of actors over sockets, which take less time than Ray's own calls.

    call(channel, method, args)   is queued, and sent in order when the replies among its `args` are there
    the actor                     answers one call after the other with what the method returned, see `socket_server`;
                                  calls whose results nobody wants are not answered
    a reply                       stays here, packed, as long as there is a reference to it, and is sent on as it is;
                                  a later call has the number of its memory, to which the actor may write again

An actor that dies loses only what it was working on. Its channel ends with it: calls on it fail, and calls that need
their replies.

One thread owns the channels, no other one reads or writes them: other threads queue functions for it. So there are no
locks, and a signal that interrupts the main thread leaves nothing half done.
"""

from __future__ import annotations

import itertools
import logging
import os
import selectors
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from fedactors.fleet.base import Fault
from fedactors.fleet.transport import authentication
from fedactors.fleet.transport.authentication import Authentication, AuthenticationError, check_user
from fedactors.fleet.transport.channel import Channel, ChannelClosed, QueuedCall, Reply
from fedactors.fleet.transport.private_folder import check_private
from fedactors.fleet.transport.shared_buffers import lent, receive, send

POSSIBLE = hasattr(os, "memfd_create") and hasattr(socket, "SO_PEERCRED")
_MOST_GREETING = 64  # connections that have not proved themselves; of more, the oldest is ended
_READ = selectors.EVENT_READ
_BOTH = selectors.EVENT_READ | selectors.EVENT_WRITE
_logger = logging.getLogger(__name__)


class SocketCalls:
    """The driver's ends of all channels; it listens at `path`, in a folder that only this user has access to."""

    def __init__(self, path: Path) -> None:
        check_private(path.parent)
        self.path = path
        self._closed = False
        self._warned = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        path.chmod(0o600)  # before `listen` lets anything connect
        self._listener.listen(128)
        self._numbers = itertools.count()
        self._channels: dict[int, Channel] = {}
        self._greeting: list[Authentication] = []  # by deadline
        self._functions: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._waker, self._woken = socket.socketpair()
        for one in (self._listener, self._waker, self._woken):
            one.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, _READ, self._accept)
        self._selector.register(self._woken, _READ, self._wake)
        self._thread = threading.Thread(target=self._loop, name="socket calls", daemon=True)
        self._thread.start()

    def channel(self) -> Channel:
        """Return a new channel; an actor connects to it by its number and secret. Calls may be made at once."""
        channel = Channel(next(self._numbers))
        self._run(partial(self._channels.__setitem__, channel.number, channel))
        return channel

    def call(self, channel: Channel, method: str, args: Sequence[Any], returns: int) -> list[Reply]:
        """Call a method of an actor; `args` may hold replies to other calls."""
        call = QueuedCall(next(self._numbers), method, args, returns)
        self._run(partial(self._queue, channel, call))
        return call.replies

    def end(self, channel: Channel) -> None:
        """End a channel: its process has ended, or is not needed any more."""
        self._run(partial(self._end, channel, None))

    def close(self) -> None:
        """End all channels and remove the socket."""
        if self._thread.is_alive():
            self._run(self._finish)
            self._thread.join()
        self.path.unlink(missing_ok=True)

    def _run(self, function: Callable[[], None]) -> None:
        """Have the thread that owns the channels call a function."""
        self._functions.put(function)
        with suppress(OSError):  # the thread has been woken often enough, or everything is closed
            self._waker.send(b"\0")

    def _loop(self) -> None:
        """Call queued functions and read from sockets until `close`."""
        while not self._closed:
            for key, events in self._selector.select(self._until_deadline()):
                if not self._closed:  # by one of the events before
                    key.data(events)
            if not self._closed:
                self._drop_late()

    def _wake(self, _: int) -> None:
        with suppress(BlockingIOError):
            while self._woken.recv(1024):
                continue
        while not self._functions.empty():
            self._functions.get()()

    def _finish(self) -> None:
        for channel in list(self._channels.values()):
            self._end(channel, None)
        remaining = [key.fileobj for key in list(self._selector.get_map().values())]
        self._selector.close()
        for one in {*remaining, self._waker}:
            one.close()  # type: ignore[union-attr]
        self._closed = True

    def _accept(self, _: int) -> None:
        """Accept a connection; it has a bounded time to prove itself, and holds up no other one."""
        try:
            connection, _address = self._listener.accept()
        except OSError:  # it has ended already, or there is no descriptor left: the actor's side will time out
            return
        connection.setblocking(False)
        deadline = time.monotonic() + authentication.SECONDS
        greeting = Authentication(connection, self._secret_of, deadline)
        self._greeting.append(greeting)
        self._selector.register(connection, _READ, partial(self._greet, greeting))
        try:
            check_user(connection)
        except (AuthenticationError, OSError) as error:
            self._drop(greeting, error)
        if len(self._greeting) > _MOST_GREETING:
            self._drop(self._greeting[0], AuthenticationError("too many connections are waiting"))

    def _secret_of(self, number: int) -> bytes | None:
        """Return the secret of a channel that no actor has connected to yet."""
        channel = self._channels.get(number)
        return None if channel is None or channel.socket is not None else channel.secret

    def _greet(self, greeting: Authentication, _: int) -> None:
        """Read the next message of a connection's authentication; nothing of it is unpickled."""
        try:
            number = greeting.proceed()
            if number is None:
                return
            if self._secret_of(number) is None:  # another connection was quicker, or the channel has ended
                raise AuthenticationError(f"no actor is expected on channel {number}")
        except BlockingIOError:
            return
        except (AuthenticationError, OSError) as error:
            self._drop(greeting, error)
            return
        self._greeting.remove(greeting)
        channel = self._channels[number]
        channel.socket = greeting.connection
        self._selector.modify(greeting.connection, _READ, partial(self._serve, channel))
        self._advance_all([channel])

    def _drop(self, greeting: Authentication, reason: Exception) -> None:
        """End a connection that is not an actor's; the first one is reported."""
        self._greeting.remove(greeting)
        self._selector.unregister(greeting.connection)
        greeting.connection.close()
        if not self._warned:
            self._warned = True
            _logger.warning("a connection to %s was refused, nothing of it was unpickled: %s", self.path, reason)

    def _until_deadline(self) -> float | None:
        """Return the seconds until a connection has to have proved itself; None if there is none."""
        return max(0.0, self._greeting[0].deadline - time.monotonic()) if self._greeting else None

    def _drop_late(self) -> None:
        while self._greeting and self._greeting[0].deadline <= time.monotonic():
            self._drop(self._greeting[0], AuthenticationError("it did not prove itself in time"))

    def _serve(self, channel: Channel, events: int) -> None:
        """Read an answer, or send calls that did not fit into the socket before."""
        try:
            if events & selectors.EVENT_WRITE and channel.socket is not None:
                self._selector.modify(channel.socket, _READ, partial(self._serve, channel))
                self._advance_all([channel])
            if events & selectors.EVENT_READ and channel.socket is not None:
                self._take(channel, channel.socket)
        except Exception as error:  # after any error it is unknown to which call the next answer would belong
            self._end(channel, Fault(type(error).__name__, f"{error}, in what an actor answered", died=True))

    def _take(self, channel: Channel, connection: socket.socket) -> None:
        try:
            taken = receive(connection)
        except BlockingIOError:
            return
        if taken is None:
            self._end(channel, None)
            return
        (number, raised), buffers = taken
        while not channel.sent[0].replies:
            channel.sent.popleft()
        call = channel.sent[0]
        if number != call.number:
            raise RuntimeError(f"answer {number} came to call {call.number}")
        for memory in lent(buffers):
            weakref.finalize(memory, channel.read.append, memory.number)
        waiting = call.settle(buffers) if raised is None else call.fail(Fault(*raised))
        channel.sent.popleft()
        self._advance_all([channel, *waiting])

    def _queue(self, channel: Channel, call: QueuedCall) -> None:
        channel.queued.append(call)
        for need in call.needs:
            if need.answer is None:
                need.waiting.append(channel)
        self._advance_all([channel])

    def _end(self, channel: Channel, fault: Fault | None) -> None:
        if channel.ended is not None:
            return
        channel.ended = ChannelClosed(channel.served, fault)
        self._channels.pop(channel.number, None)
        if channel.socket is not None:
            self._selector.unregister(channel.socket)
            channel.socket.close()
            channel.socket = None
        self._advance_all([channel])

    def _advance_all(self, channels: Sequence[Channel]) -> None:
        """Send what can be sent on `channels`, and on channels with calls that need what has failed meanwhile."""
        todo = deque(channels)
        while todo:
            todo += self._advance(todo.popleft())

    def _advance(self, channel: Channel) -> list[Channel]:
        """Send calls as far as possible and fail those that cannot be sent; return channels that need the latter."""
        waiting: list[Channel] = []
        if channel.ended is not None:
            for call in (*channel.sent, *channel.queued):
                waiting += call.fail(channel.ended)
            channel.sent.clear()
            channel.queued.clear()
        while channel.queued:
            call = channel.queued[0]
            failure = call.failed_need()
            if failure is None:
                if not self._send(channel, call):
                    break
                failure = call.fault
            channel.queued.popleft()
            if failure is not None:
                waiting += call.fail(failure)
        return waiting

    def _send(self, channel: Channel, call: QueuedCall) -> bool:
        """Send a call, or set its fault if it cannot be sent at all; return False if it has to wait."""
        arguments = call.arguments()
        if channel.socket is None or not channel.can_send or arguments is None:
            return False
        read = [channel.read.popleft() for _ in range(len(channel.read))]
        try:
            send(channel.socket, (call.number, call.method, call.places, len(call.replies), read), arguments)
        except BlockingIOError:  # it is sent as soon as there is room
            self._selector.modify(channel.socket, _BOTH, partial(self._serve, channel))
        except ConnectionError:  # the end of the channel is the next event
            pass
        except (OSError, ValueError) as error:
            call.fault = Fault(type(error).__name__, f"{error}, in sending an actor a call of {call.method}")
        else:
            channel.sent.append(call)  # with what it needs, which must not be written to before there is an answer
            return True
        channel.read.extendleft(reversed(read))
        return call.fault is not None
