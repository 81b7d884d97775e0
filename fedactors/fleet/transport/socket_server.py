"""The actor's side of a channel: a process that answers one call after the other."""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedactors.fleet.base import CallError
from fedactors.fleet.transport import authentication
from fedactors.fleet.transport.authentication import AuthenticationError, authenticate_to_driver
from fedactors.fleet.transport.memory_files import Mappings, Reused
from fedactors.fleet.transport.private_folder import UnsafeFolderError, check_private
from fedactors.fleet.transport.shared_buffers import MOST_FILES, SharedBuffer, lent, receive, send

Perform = Callable[[str, list[Any]], Any]


class ChannelError(Exception):
    """An actor cannot connect to its driver, or what is there is not its driver."""


def answer(path: str, number: int, secret: bytes, perform: Perform) -> None:
    """Answer the calls on a channel with what `perform(method, args)` returns, until the channel ends.

    Raises ChannelError if there is no driver at `path` that has the channel's secret.
    """
    reused = Reused()
    mappings = Mappings()
    with connected(path, number, secret) as connection, suppress(ConnectionError):
        while (message := receive(connection)) is not None:
            _answer_one(connection, message, perform, reused, mappings)
            del message  # models are freed while the driver does not wait


def connected(path: str, number: int, secret: bytes) -> socket.socket:
    """Return a connection to the driver on which both sides have proved themselves. Raises ChannelError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.settimeout(authentication.SECONDS)
        check_private(Path(path).parent)
        connection.connect(path)
        authenticate_to_driver(connection, number, secret)
        connection.settimeout(None)
    except (OSError, AuthenticationError, UnsafeFolderError) as error:
        connection.close()
        raise ChannelError(f"process {os.getpid()} has no connection to its driver over {path}: {error}") from None
    return connection


def _answer_one(
    connection: socket.socket,
    message: tuple[tuple[Any, ...], list[SharedBuffer]],
    perform: Perform,
    reused: Reused,
    mappings: Mappings,
) -> None:
    """Do a call and send its answer, if results are wanted. Raises ConnectionError if the driver has ended."""
    (number, method, places, returns, read), (plain, *given) = message
    reused.give_back(read)
    to_reuse = reused if returns <= MOST_FILES else None
    buffers: list[SharedBuffer] = []
    raised = None
    try:
        opened = dict(zip(places, (buffer.open(mappings) for buffer in given), strict=True))
        result = perform(method, [opened.get(place, arg) for place, arg in enumerate(plain.open())])
        for one in result if returns > 1 else [result][:returns]:
            buffers.append(SharedBuffer.of(one, to_reuse))
    except Exception as error:
        raised = _described(error, method)
    if returns and not _sent(connection, number, raised, buffers):
        reused.give_back(memory.number for memory in lent(buffers))


def _sent(
    connection: socket.socket, number: int, raised: tuple[str, str] | None, buffers: Sequence[SharedBuffer]
) -> bool:
    """Send an answer; return whether `buffers` were sent with it."""
    try:
        send(connection, (number, raised), [] if raised else buffers)
    except ConnectionError:
        raise
    except (OSError, ValueError) as error:
        send(connection, (number, _described(error, "answering")))
        return False
    return raised is None


def _described(error: Exception, method: str) -> tuple[str, str]:
    """Return the class of an error and its description."""
    if isinstance(error, CallError):
        return type(error).__name__, str(error)
    return type(error).__name__, f"{method}, process {os.getpid()}:\n{traceback.format_exc()}"
