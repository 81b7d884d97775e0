"""Channels to actors' processes, the calls queued on them, and the replies to these."""

from __future__ import annotations

import secrets
import socket
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from fedactors.fleet.base import Fault
from fedactors.fleet.transport.authentication import SECRET_BYTES
from fedactors.fleet.transport.shared_buffers import SharedBuffer

_MOST_UNANSWERED = 4  # calls that an actor is sent before it has answered, so that it need not wait for the next one


class ChannelClosed(NamedTuple):
    """Takes the place of an answer when the channel ends first."""

    served: Any  # Ray's reference to the call in which the process served the channel: it has the reason
    fault: Fault | None  # why this side has ended it, if it has


Answer: TypeAlias = SharedBuffer | Fault | ChannelClosed


class Reply:
    """The result of a call; `answer` is None until `there` is set."""

    __slots__ = ("answer", "there", "waiting")

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer
        self.there = threading.Event()
        self.waiting: list[Channel] = []  # channels with calls that need this reply
        if answer is not None:
            self.there.set()


class QueuedCall:
    """A call that is not answered yet; `needs` are the replies among its arguments, at `places`.

    Without `replies` there is no answer: it is done when a later call is answered.
    """

    __slots__ = ("fault", "method", "needs", "number", "places", "plain", "replies")

    def __init__(self, number: int, method: str, args: Sequence[Any], returns: int) -> None:
        self.number = number
        self.method = method
        self.fault: Fault | None = None  # why it could not be sent
        self.places = [place for place, arg in enumerate(args) if isinstance(arg, Reply)]
        self.plain = SharedBuffer.of([None if isinstance(arg, Reply) else arg for arg in args])
        self.needs: list[Reply] = [args[place] for place in self.places]
        self.replies = [Reply() for _ in range(returns)]

    def arguments(self) -> list[SharedBuffer] | None:
        """Return what is to be sent besides the call, or None if one of the replies it needs is not there."""
        needed = [need.answer for need in self.needs if isinstance(need.answer, SharedBuffer)]
        return [self.plain, *needed] if len(needed) == len(self.needs) else None

    def failed_need(self) -> Fault | ChannelClosed | None:
        """Return the failure of a reply that the call needs."""
        for need in self.needs:
            if isinstance(need.answer, Fault | ChannelClosed):
                return need.answer
        return None

    def settle(self, answers: Sequence[Answer]) -> list[Channel]:
        """Set the answers; return the channels with calls that need one of them."""
        waiting: list[Channel] = []
        for reply, answer in zip(self.replies, answers, strict=True):
            reply.answer = answer
            reply.there.set()
            waiting += reply.waiting
            reply.waiting = []
        return waiting

    def fail(self, failure: Fault | ChannelClosed) -> list[Channel]:
        """Set the same failure as each answer; return the channels with calls that need one of them."""
        return self.settle([failure] * len(self.replies))


class Channel:
    """The connection to the process of an actor; it ends with the process."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.secret = secrets.token_bytes(SECRET_BYTES)  # the actor gets it through Ray
        self.served: Any = None
        self.ended: ChannelClosed | None = None
        self.socket: socket.socket | None = None  # once the actor has connected and proved itself
        self.queued: deque[QueuedCall] = deque()
        self.sent: deque[QueuedCall] = deque()
        self.read: deque[int] = deque()  # numbers of memory of the process that nobody reads any more

    @property
    def can_send(self) -> bool:
        """Whether the actor is connected and has not been sent as many calls as it may have unanswered."""
        return self.socket is not None and sum(bool(call.replies) for call in self.sent) < _MOST_UNANSWERED
