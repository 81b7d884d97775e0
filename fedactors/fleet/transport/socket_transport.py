"""Actors of Ray that are all on this machine, and are called past it: a line to each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError

from fedactors.fleet.base import Fault
from fedactors.fleet.transport.shared_buffers import SharedBuffer
from fedactors.fleet.transport.socket_calls import Channel, ChannelClosed, Reply, SocketCalls


class ObjectRef:
    """A value for actors: an object of Ray for what they are made of, a parcel for calls; either when it is needed."""

    def __init__(self, value: object) -> None:
        self.value = value

    @cached_property
    def reference(self) -> Any:
        """A reference to it in the object store."""
        return ray.put(self.value)

    @cached_property
    def reply(self) -> Reply:
        """The same as if a call had returned it."""
        return Reply(SharedBuffer.of(self.value))


class ServedError(Exception):
    """A line ended; `served` is a reference to what the actor did on it, and Ray knows why that ended."""

    def __init__(self, served: Any) -> None:
        super().__init__(served)
        self.served = served


class SocketActors:
    """The lines to the actors of one fleet; `path` is where this process listens."""

    def __init__(self, path: Path) -> None:
        self._calls, self._lines = SocketCalls(path), dict[Any, Channel]()

    def listen(self, actor: Any) -> None:
        """Have an actor that knows its role, or will soon, answer on a line of its own, unless it does."""
        if actor not in self._lines or self._lines[actor].ended:
            line = self._lines[actor] = self._calls.line()
            line.served = actor.serve.remote(str(self._calls.path), line.number)
            # however it ends, and be it that the process died before it listened
            line.served.future().add_done_callback(lambda _: self._calls.end(line))

    def renew(self, actor: Any) -> None:
        """Give an actor that was restarted a line, in the place of the one it had."""
        self.forget(actor)
        self.listen(actor)

    def forget(self, actor: Any) -> None:
        """End the line to an actor that was ended, or died."""
        if line := self._lines.pop(actor, None):
            self._calls.end(line)

    def call(self, actor: Any, method: str, args: Sequence[Any], returns: int) -> Any:
        """Ask an actor; return a reply, or a list of several."""
        known = [arg.reply if isinstance(arg, ObjectRef) else arg for arg in args]
        replies = self._calls.call(self._lines[actor], method, known, returns)
        return replies[0] if returns == 1 else replies

    def get(self, handle: Reply | ObjectRef, seconds: float) -> Any:
        """Return what a call returned, or what was put.

        Raises GetTimeoutError if it takes longer, Fault if the call failed, ServedError if its line, or that of
        somebody it needed, ended first.
        """
        if isinstance(handle, ObjectRef):
            return handle.value
        if not handle.there.wait(seconds):
            raise GetTimeoutError
        answer = handle.answer
        if isinstance(answer, SharedBuffer):
            return answer.open()
        if isinstance(answer, ChannelClosed) and answer.fault is None:
            raise ServedError(answer.served)
        fault = answer.fault if isinstance(answer, ChannelClosed) else answer
        raise Fault(*fault.args) if fault else GetTimeoutError

    def close(self) -> None:
        """End all lines."""
        self._calls.close()
