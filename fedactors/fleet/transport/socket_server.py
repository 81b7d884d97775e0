"""The far end of a line: a process that answers one call after the other."""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from fedactors.fleet.base import CallError
from fedactors.fleet.transport.memory_files import Mappings, Reused
from fedactors.fleet.transport.shared_buffers import MOST_FILES, SharedBuffer, lent, receive, send


def answer(path: str, number: int, perform: Callable[[str, list[Any]], Any]) -> None:
    """Answer the calls on a line with what `perform(method, args)` returns, until the line ends."""
    reused, mappings = Reused(), Mappings()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(path)
        send(line, (number,))
        with suppress(ConnectionError):
            while (asked := receive(line)) is not None:
                (call, method, places, returns, read), (plain, *given) = asked
                reused.give_back(read)
                kept = reused if returns <= MOST_FILES else None
                opened, found, one, parcels, raised = dict[int, Any](), None, None, list[SharedBuffer](), None
                try:
                    opened = dict(zip(places, (parcel.open(mappings) for parcel in given), strict=True))
                    found = perform(method, [opened.get(place, arg) for place, arg in enumerate(plain.open())])
                    for one in found if returns > 1 else [found]:
                        parcels.append(SharedBuffer.of(one, kept))
                except Exception as error:
                    raised = _told(error, method)
                if not _answered(line, call, raised, parcels):
                    reused.give_back(memory.number for memory in lent(parcels))
                del asked, plain, given, opened, found, one, parcels  # models are given back while nobody waits


def _answered(line: socket.socket, call: int, raised: tuple[str, str] | None, parcels: Sequence[SharedBuffer]) -> bool:
    """Send an answer; return whether `parcels` went with it."""
    try:
        send(line, (call, raised), [] if raised else parcels)
    except ConnectionError:
        raise
    except (OSError, ValueError) as error:
        send(line, (call, _told(error, "answering")))
        return False
    return raised is None


def _told(error: Exception, method: str) -> tuple[str, str]:
    """Return the class of an error and what there is to say of it."""
    said = str(error) if isinstance(error, CallError) else f"{method}, process {os.getpid()}:\n{traceback.format_exc()}"
    return type(error).__name__, said
