"""Driver and actor prove to each other that they have a channel's secret, before either of them unpickles anything.

    actor  -> driver   number of the channel (8 bytes), nonce of the actor (32)
    driver -> actor    nonce of the driver (32), HMAC-SHA256(secret, "driver", number, both nonces)
    actor  -> driver   HMAC-SHA256(secret, "actor", number, both nonces)

The secret itself is never sent on the socket: an actor gets it as an argument of a call of Ray. Until the last message
each side reads nothing but raw bytes of these sizes; all else ends the connection. The labels differ, so that a
stranger cannot send one side's proof back to it. Before that, each side checks the user of the other one, which the
kernel reports (SO_PEERCRED).
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
from collections.abc import Callable

SECONDS = 10.0  # for all three messages
SECRET_BYTES = 32
_NUMBER_BYTES = 8
_NONCE_BYTES = 32
_PROOF_BYTES = 32
_CREDENTIALS = struct.Struct("3i")  # process, user and group


class AuthenticationError(Exception):
    """The other side of a connection is not the one it should be."""


def check_user(connection: socket.socket) -> None:
    """Raise AuthenticationError unless the other side's process is of this user."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _process, user, _group = _CREDENTIALS.unpack(found)
    if user != os.geteuid():
        raise AuthenticationError(f"the other side is a process of user {user}, not of user {os.geteuid()}")


def authenticate_to_driver(connection: socket.socket, number: int, secret: bytes) -> None:
    """Do the actor's part on a connection that waits. Raises AuthenticationError, or OSError if it breaks off."""
    check_user(connection)
    nonce = secrets.token_bytes(_NONCE_BYTES)
    connection.send(number.to_bytes(_NUMBER_BYTES, "big") + nonce)
    answer = _exactly(connection, _NONCE_BYTES + _PROOF_BYTES)
    nonces = nonce + answer[:_NONCE_BYTES]
    if not hmac.compare_digest(answer[_NONCE_BYTES:], _proof(secret, b"driver", number, nonces)):
        raise AuthenticationError("the other side does not have the channel's secret")
    connection.send(_proof(secret, b"actor", number, nonces))


class Authentication:
    """The driver's part on a connection that does not wait.

    Args:
        connection: just accepted.
        secret_of: returns the secret of a channel by its number; None if no actor is expected there.
        deadline: on the monotonic clock, when the connection is to be ended.

    """

    def __init__(self, connection: socket.socket, secret_of: Callable[[int], bytes | None], deadline: float) -> None:
        self.connection = connection
        self.deadline = deadline
        self._secret_of = secret_of
        self._number = -1
        self._expected: bytes | None = None  # the actor's proof, once it is asked for

    def proceed(self) -> int | None:
        """Read the next message; return the number of the channel when its actor has proved itself, else None.

        Raises AuthenticationError if the other side is a stranger, or OSError if the connection breaks off.
        """
        if self._expected is None:
            self._challenge(_exactly(self.connection, _NUMBER_BYTES + _NONCE_BYTES))
            return None
        if not hmac.compare_digest(_exactly(self.connection, _PROOF_BYTES), self._expected):
            raise AuthenticationError("the other side does not have the channel's secret")
        return self._number

    def _challenge(self, hello: bytes) -> None:
        self._number = int.from_bytes(hello[:_NUMBER_BYTES], "big")
        secret = self._secret_of(self._number)
        if secret is None:
            raise AuthenticationError(f"no actor is expected on channel {self._number}")
        nonce = secrets.token_bytes(_NONCE_BYTES)
        nonces = hello[_NUMBER_BYTES:] + nonce
        self._expected = _proof(secret, b"actor", self._number, nonces)
        self.connection.send(nonce + _proof(secret, b"driver", self._number, nonces))


def _proof(secret: bytes, side: bytes, number: int, nonces: bytes) -> bytes:
    """Return the proof of one side; all parts but the label have fixed sizes, and the label ends with a zero."""
    return hmac.digest(secret, side + b"\0" + number.to_bytes(_NUMBER_BYTES, "big") + nonces, "sha256")


def _exactly(connection: socket.socket, size: int) -> bytes:
    """Return one message of `size` bytes. Raises AuthenticationError if it is shorter or longer."""
    data = connection.recv(size + 1)  # descriptors that come with it are closed by the kernel
    if len(data) != size:
        raise AuthenticationError(
            "the other side sent a message of the wrong size" if data else "the other side ended the connection"
        )
    return data
