"""The address of a Ray cluster, looked at before Ray connects to it: Ray would try for minutes, deaf to signals."""

from __future__ import annotations

import os
import socket
from typing import Any

import ray

from fedactors.errors import ClusterError

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
_SCHEME = "ray://"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # of HTTP/2, and empty settings
_SETTINGS, _KIND = 4, 3  # the frame that a server of gRPC, as Ray's, answers with; where its kind stands


def reachable(address: str) -> str:
    """Return the address with "auto" resolved. Raises ClusterError if what listens there is no Ray, or nothing does."""
    found = _found() if address == "auto" else address
    host, colon, port = found.removeprefix(_SCHEME).rpartition(":")
    if not colon or not port.isdecimal():
        return found  # an address that Ray checks
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS) as connection:
            _refuse_others(connection, address)
    except (OSError, OverflowError) as error:
        where = f"{address} ({found})" if found != address else address
        raise ClusterError(f"no Ray cluster at {where}: {error}") from None
    return found


def is_loopback(address: str) -> bool:
    """Whether an address is one of this machine's own that others cannot reach."""
    return address.removeprefix(_SCHEME).rpartition(":")[0].strip("[]") in ("127.0.0.1", "localhost", "::1")


def _found() -> str:
    """Return the address of a cluster of this machine. Raises ClusterError if there is none."""
    services: Any = ray._private.services
    try:
        address = services.canonicalize_bootstrap_address("auto", None)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ClusterError(f"no Ray cluster at auto: {' '.join(str(error).split())[:300]}") from None
    if not address:
        raise ClusterError("no Ray cluster at auto: none runs on this machine (accepted: the address of its head node)")
    return str(address)


def _refuse_others(connection: socket.socket, address: str) -> None:
    """Raise ClusterError if the process at the other end does not speak gRPC."""
    if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
        return  # it would only answer an encrypted greeting
    connection.settimeout(_ANSWER_SECONDS)
    answer = b""
    try:
        connection.sendall(_PREFACE)
        while len(answer) <= _KIND and (part := connection.recv(9)):
            answer += part
    except TimeoutError:
        pass
    if len(answer) <= _KIND or answer[_KIND] != _SETTINGS:
        raise ClusterError(f"no Ray cluster at {address}: a process listens there that is none of Ray's")
