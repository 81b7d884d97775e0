"""Calls of actors over sockets beside Ray: for a Ray that is started here, whose actors are all on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import ray
from ray.exceptions import GetTimeoutError

from fedactors.fleet.base import Fault, Handle
from fedactors.fleet.transport.channel import Channel, ChannelClosed, Reply
from fedactors.fleet.transport.private_folder import private_folder
from fedactors.fleet.transport.shared_buffers import SharedBuffer
from fedactors.fleet.transport.socket_calls import SocketCalls

T = TypeVar("T")
_SOCKET = "s"


class PutValue(Generic[T]):
    """The handle of a value that was put: an object of Ray for constructors, a reply for calls, when needed."""

    def __init__(self, value: T) -> None:
        self.value = value

    @cached_property
    def ray_reference(self) -> Any:
        """Ray's reference to the value in the object store."""
        return ray.put(self.value)

    @cached_property
    def reply(self) -> Reply:
        """A reply, as if a call had returned the value."""
        return Reply(SharedBuffer.of(self.value))


class SocketTransport:
    """A channel to each actor. Handles are replies and put values; each large one takes memory and a descriptor."""

    cheap_calls = True

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._opened: SocketCalls | None = None
        self._channels: dict[Any, Channel] = {}

    def open(self) -> None:
        """Make the folder of the socket and listen. Raises ClusterError if there is no safe place for the folder."""
        self._folder = private_folder(_SOCKET)
        self._opened = SocketCalls(self._folder / _SOCKET)

    def close(self) -> None:
        """End all channels and remove the folder."""
        if self._opened is not None:
            self._opened.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._channels.clear()
        self._opened = None
        self._folder = None

    @property
    def _calls(self) -> SocketCalls:
        assert self._opened is not None, "the transport is not open"
        return self._opened

    def put(self, value: T) -> Handle[T]:
        """Return a handle of `value`, which is packed when it is first needed."""
        return cast("Handle[T]", PutValue(value))

    def constructor_argument(self, arg: object) -> object:
        """Return Ray's reference to a value that was put, anything else as it is."""
        return arg.ray_reference if isinstance(arg, PutValue) else arg

    def connect(self, actor: Any) -> None:
        """Have an actor serve a channel of its own, unless it does."""
        if actor in self._channels and not self._channels[actor].ended:
            return
        calls = self._calls
        channel = calls.channel()
        self._channels[actor] = channel
        channel.served = actor.serve.remote(str(calls.path), channel.number, channel.secret)
        # the channel ends with this call, also if the process dies before it connects
        channel.served.future().add_done_callback(lambda _: calls.end(channel))

    def reconnect(self, actor: Any) -> None:
        """Have the new process of an actor serve a new channel."""
        self.disconnect(actor)
        self.connect(actor)

    def disconnect(self, actor: Any) -> None:
        """End the channel of an actor."""
        if channel := self._channels.pop(actor, None):
            self._calls.end(channel)

    def call(self, actor: Any, method: str, args: Sequence[object], returns: int) -> list[Handle[Any]]:
        """Call a method; return a reply for each result."""
        known = [arg.reply if isinstance(arg, PutValue) else arg for arg in args]
        replies: list[Any] = [*self._calls.call(self._channels[actor], method, known, returns)]
        return replies

    def get(self, handle: Handle[T], seconds: float) -> T:
        """Return what a call returned, or what was put.

        Raises GetTimeoutError if it takes longer than `seconds`, Fault if the call failed. If the channel ended first,
        that of the actor or of another one whose result it needed, raises what Ray raises for the end of the process.
        """
        found: object = handle
        if isinstance(found, PutValue):
            return cast("T", found.value)
        reply = cast("Reply", found)
        if not reply.there.wait(seconds):
            raise GetTimeoutError
        answer = reply.answer
        if isinstance(answer, SharedBuffer):
            return cast("T", answer.open())
        if isinstance(answer, ChannelClosed):
            raise self._fault_of(answer, seconds)
        assert answer is not None
        raise Fault(*answer.args)

    def _fault_of(self, closed: ChannelClosed, seconds: float) -> Fault:
        """Return why a channel ended. Raises RayError if Ray has the reason, GetTimeoutError if it has none yet."""
        if closed.fault is not None:
            return Fault(*closed.fault.args)
        ray.get(closed.served, timeout=seconds)
        return Fault("ActorDiedError", "its channel ended", died=True)
