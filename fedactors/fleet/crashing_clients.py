"""Which client ends the process that trains it, and how: found by training each one in a child of its own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial

from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, Vectors

_SURVIVED = 97  # exit code of a child that came to its end, or raised an exception


def crashing_client(
    trainer: Trainer, chunk: Chunk, sent: Sequence[Vectors], kept: Sequence[Vectors | None], seconds: float
) -> str:
    """Return the first client whose training ends its process, and how, in words; empty if none does in so long.

    Children are forked: in a process that has computed gradients by torch's autograd they only raise, and nothing is
    found.
    """
    until = time.monotonic() + seconds
    for place, client in enumerate(chunk.clients):
        ended = _end_of(partial(trainer.learn, chunk.only(place), sent, kept[place : place + 1]), until)
        if ended:
            return f"client {client}: {ended}"
    return ""


def _end_of(call: Callable[[], object], until: float) -> str:
    """Return how a child ends that makes a call, in words; empty if the call returns, raises or its time is up."""
    if time.monotonic() > until:
        return ""
    child = os.fork()
    if not child:
        try:
            call()
        finally:
            os._exit(_SURVIVED)
    while (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return ""
        time.sleep(0.01)
    code = os.waitstatus_to_exitcode(found[1])
    if code == _SURVIVED:
        return ""
    how = f"with exit code {code}" if code >= 0 else f"by signal {-code} ({signal.Signals(-code).name})"
    return f"the process that trains it ends {how}"
