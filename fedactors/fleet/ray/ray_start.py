"""How to join a Ray cluster, or start one on this machine: on the loopback address, with our signal handlers."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import ray
from ray.exceptions import GetTimeoutError

from fedactors.errors import ClusterError
from fedactors.fleet.ray.address_space import store_within_limit
from fedactors.fleet.ray.ray_address import is_loopback, reachable
from fedactors.fleet.ray.ray_messages import keep_messages, show_messages
from fedactors.job_limits import usable_cores

_ATTEMPTS = 2
_USUAL_FOLDER = "/tmp"
_LONGEST_FOLDER = 44  # bytes: Ray adds 62 for its session and socket, and the path of a socket has 107 at most
_PRIORITY = {
    "worker_niceness": 0
}  # that of this process; under Ray's own 15, hosts wait while the driver records rounds


@contextmanager
def connected(address: str | None, cores: int | None = None) -> Iterator[None]:
    """Be connected to a cluster while the context lasts. Raises ClusterError if there is none at `address`."""
    own = address is None and not ray.is_initialized()
    well = False
    with same_handlers():
        joined = connect(address, cores or usable_cores(), None)
    try:
        yield
        well = True
    finally:
        if not joined:
            disconnect(tidy=own and well)


def connect(address: str | None, cores: int, store: int | None) -> bool:
    """Connect to Ray; return whether this process was connected before, and must stay so.

    Raises ClusterError if there is no cluster at `address`, this process is connected to another one, or one that
    starts here would have too little address space.
    """
    if ray.is_initialized():
        there = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", there):
            raise ClusterError(f"cluster.address: this process is connected to {there} already (found {address})")
        return True
    keep_messages()
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False, "configure_logging": True}
    if address is None:
        size = store_within_limit(store)
        own: dict[str, Any] = {"num_cpus": cores, "include_dashboard": False, "object_store_memory": size}
        _start(own | quiet)
        return False
    found = reachable(address)
    try:
        with _loopback() if is_loopback(found) else nullcontext():
            ray.init(found, **quiet)
    except (ConnectionError, ValueError, RuntimeError, GetTimeoutError) as error:
        raise ClusterError(f"no Ray cluster at {address}: {_line(error)}") from None
    return False


def _start(options: dict[str, Any]) -> None:
    """Start a Ray on this machine, at the second try if the first one fails. Raises ClusterError if both do."""
    _have_a_token()
    for attempt in range(_ATTEMPTS):
        try:
            with _loopback(), _deaf_to_hangups():
                # "local" never joins a cluster that happens to be around
                ray.init("local", **options, _system_config=_PRIORITY, _temp_dir=_short_folder())
            return
        except ClusterError:
            raise
        except Exception as error:  # of any kind: its services are processes that fail for reasons of their own
            disconnect(tidy=True)
            if attempt + 1 == _ATTEMPTS:
                raise ClusterError(
                    f"Ray does not start on this machine: {type(error).__name__}: {_line(error)}"
                    " (accepted: --fleet local, which needs no Ray; or more memory, processes and open files)"
                ) from None
            print(f"Ray did not start ({type(error).__name__}): it is tried again", file=sys.stderr, flush=True)


def _have_a_token() -> None:
    """Give Ray the token by which its processes know each other, where it cannot keep one in the home folder."""
    if any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE")):
        return
    try:
        folder = Path.home() / ".ray"
        folder.mkdir(exist_ok=True)
        if not (folder / "auth_token").exists():
            tempfile.TemporaryFile(dir=folder).close()  # raises where the file system is read-only
    except (OSError, RuntimeError):  # or there is no home
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def _short_folder() -> str | None:
    """Return where Ray is to make its files, if its own choice gives sockets too long a path; None if it does not.

    Raises ClusterError if there is no other folder.
    """
    chosen = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or _USUAL_FOLDER
    if len(os.fsencode(Path(chosen) / "ray")) <= _LONGEST_FOLDER:
        return None
    if not os.access(_USUAL_FOLDER, os.W_OK | os.X_OK):
        variable = "RAY_TMPDIR" if os.environ.get("RAY_TMPDIR") else "TMPDIR"
        raise ClusterError(
            f"{variable}: {chosen}: Ray's sockets there would have too long a path"
            f" (accepted: a folder of up to {_LONGEST_FOLDER - 4} bytes)"
        )
    return f"{_USUAL_FOLDER}/ray"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:500]


def disconnect(*, tidy: bool) -> None:
    """Leave Ray, and end one that was started here; if `tidy`, remove the folder of its logs and sockets too."""
    node = getattr(cast(Any, ray)._private.worker, "_global_node", None)
    session = node.get_session_dir_path() if node is not None else ""
    ray.shutdown()
    show_messages()
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
def _deaf_to_hangups() -> Iterator[None]:
    """Have processes that start now never get SIGHUP, as Ray itself keeps SIGINT from its own.

    Where a terminal is closed, the state of a run is fetched from them and saved. One that comes to this process is
    delivered when the context ends.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
