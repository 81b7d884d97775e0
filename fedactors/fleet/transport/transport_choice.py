"""Which transport a fleet on Ray gets."""

from __future__ import annotations

import ray

from fedactors.fleet.transport.base import Transport
from fedactors.fleet.transport.ray_transport import RayTransport
from fedactors.fleet.transport.socket_calls import POSSIBLE
from fedactors.fleet.transport.socket_transport import SocketTransport


def choose_transport(address: str | None, *, few_vectors: bool) -> Transport:
    """Return sockets for a Ray that is going to be started on this machine, if a run has few vectors at a time.

    Each large vector takes a file descriptor there. All else is done by Ray's own calls.
    """
    starts_ray = address is None and not ray.is_initialized()
    return SocketTransport() if few_vectors and POSSIBLE and starts_ray else RayTransport()
