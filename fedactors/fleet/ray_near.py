"""Actors of Ray that are all on this machine, and are called past it: a line to each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError

from fedactors.fleet.fleet import Fault
from fedactors.fleet.near_calls import Line, NearCalls, Result
from fedactors.fleet.parcels import Parcel


class LineEndedError(Exception):
    """A line ended; `served` is a reference to what the actor did on it, and Ray knows why that ended."""

    def __init__(self, served: Any) -> None:
        super().__init__(served)
        self.served = served


class NearActors:
    """The lines to the actors of one fleet; `path` is where this process listens."""

    def __init__(self, path: Path) -> None:
        self._calls, self._lines = NearCalls(path), dict[Any, Line]()

    def listen(self, actor: Any) -> None:
        """Have an actor that knows its role, or will soon, answer on a line of its own, unless it does."""
        if actor not in self._lines or self._lines[actor].ended:
            line = self._lines[actor] = self._calls.line()
            line.served = actor.serve.remote(str(self._calls.path), line.number)

    def renew(self, actor: Any) -> None:
        """Give an actor that was restarted a line, in the place of the one it had."""
        self.forget(actor)
        self.listen(actor)

    def forget(self, actor: Any) -> None:
        """End the line to an actor that was ended, or died."""
        if line := self._lines.pop(actor, None):
            self._calls.end(line)

    def call(self, actor: Any, method: str, args: Sequence[Any], returns: int) -> Any:
        """Ask an actor; return a result, or a list of several."""
        there = [ray.get(arg) if isinstance(arg, ray.ObjectRef) else arg for arg in args]  # put before: at once
        results = self._calls.call(self._lines[actor], method, there, returns)
        return results[0] if returns == 1 else results

    def get(self, result: Result, seconds: float) -> Any:
        """Return what a call returned.

        Raises GetTimeoutError if it takes longer, Fault if the call failed, LineEndedError if its line, or that of
        somebody it needed, ended first.
        """
        came = self._calls.wait(result, seconds)
        if isinstance(came, Parcel):
            return came.open()
        if isinstance(came, Fault):
            raise came
        raise GetTimeoutError if came is None else LineEndedError(came.served)

    def close(self) -> None:
        """End all lines."""
        self._calls.close()
