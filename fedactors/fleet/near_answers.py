"""The far end of a line: a process that answers one call after the other."""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from fedactors.fleet.fleet import CallError
from fedactors.fleet.parcels import Parcel, receive, send


def answer(path: str, number: int, perform: Callable[[str, list[Any]], Any]) -> None:
    """Answer the calls on a line with what `perform(method, args)` returns, until the line ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(path)
        send(line, (number,))
        with suppress(ConnectionError):
            while (asked := receive(line)) is not None:
                (call, method, places, returns), (plain, *given) = asked
                opened, found, parcels, raised = dict[int, Any](), None, list[Parcel](), None
                try:
                    opened = dict(zip(places, (parcel.open() for parcel in given), strict=True))
                    found = perform(method, [opened.get(place, arg) for place, arg in enumerate(plain.open())])
                    parcels = [Parcel.of(one) for one in (found if returns > 1 else [found])]
                except Exception as error:
                    raised = _told(error, method)
                _reply(line, call, raised, parcels)
                del asked, plain, given, opened, found, parcels  # models are given back while nobody waits


def _reply(line: socket.socket, call: int, raised: tuple[str, str] | None, parcels: Sequence[Parcel]) -> None:
    try:
        send(line, (call, raised), parcels)
    except ConnectionError:
        raise
    except (OSError, ValueError) as error:
        send(line, (call, _told(error, "answering")))


def _told(error: Exception, method: str) -> tuple[str, str]:
    """Return the class of an error and what there is to say of it."""
    said = str(error) if isinstance(error, CallError) else f"{method}, process {os.getpid()}:\n{traceback.format_exc()}"
    return type(error).__name__, said
