"""How to join a Ray cluster, or start one on this machine: on the loopback address, with our signal handlers."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import ray
from ray.exceptions import GetTimeoutError

from fedactors.errors import ClusterError

_CONNECT_SECONDS = 10.0
_PRIORITY = {
    "worker_niceness": 0
}  # that of this process; under Ray's own 15, hosts wait while the driver records rounds


@contextmanager
def connected(address: str | None, cores: int | None = None) -> Iterator[None]:
    """Be connected to a cluster while the context lasts. Raises ClusterError if there is none at `address`."""
    own = address is None and not ray.is_initialized()
    well = False
    with same_handlers():
        joined = connect(address, cores or os.cpu_count() or 1, None)
    try:
        yield
        well = True
    finally:
        if not joined:
            disconnect(tidy=own and well)


def connect(address: str | None, cores: int, store: int | None) -> bool:
    """Connect to Ray; return whether this process was connected before, and must stay so.

    Raises ClusterError if there is no cluster at `address`, or this process is connected to another one.
    """
    if ray.is_initialized():
        there = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", there):
            raise ClusterError(f"cluster.address: this process is connected to {there} already (found {address})")
        return True
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False, "configure_logging": True}
    if address is None:
        with _loopback():
            # "local" never joins a cluster that happens to be around
            own: dict[str, Any] = {"num_cpus": cores, "include_dashboard": False, "object_store_memory": store}
            ray.init("local", **own, _system_config=_PRIORITY, **quiet)
        return False
    host = _knock(address)
    try:
        with _loopback() if host in ("127.0.0.1", "localhost", "::1") else nullcontext():
            ray.init(address, **quiet)
    except (ConnectionError, ValueError, RuntimeError, GetTimeoutError) as error:
        raise ClusterError(f"no Ray cluster at {address}: {' '.join(str(error).split())[:500]}") from None
    return False


def disconnect(*, tidy: bool) -> None:
    """Leave Ray, and end one that was started here; if `tidy`, remove the folder of its logs and sockets too."""
    node = getattr(cast(Any, ray)._private.worker, "_global_node", None)
    session = node.get_session_dir_path() if node is not None else ""
    ray.shutdown()
    if tidy and session:
        shutil.rmtree(session, ignore_errors=True)


@contextmanager
def same_handlers() -> Iterator[None]:
    """Restore the handler of SIGTERM that ray.init replaces by one that ends the process without a summary."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:  # from Ray's own handler, while Ray starts
        raise KeyboardInterrupt from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


@contextmanager
def _loopback() -> Iterator[None]:
    """Keep every port of a Ray that starts now to this machine.

    `_node_ip_address="127.0.0.1"` would not: Ray turns it into the machine's outer address. What does is the switch by
    which Ray stays local on desktop systems; it is read from the environment when ray is imported.
    """
    switch, constants = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", ray._private.ray_constants
    variable_before = os.environ.get(switch)
    constant_before = constants.ENABLE_RAY_CLUSTER
    os.environ[switch] = "0"
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = constant_before
        if variable_before is None:
            del os.environ[switch]
        else:
            os.environ[switch] = variable_before


def _knock(address: str) -> str:
    """Return the host of an address. Raises ClusterError if no process listens there: Ray would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return ""  # "auto", or an address that Ray checks
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray cluster at {address}: {error}") from None
    return host
