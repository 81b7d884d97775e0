"""Joins Plans to the fleet: prepares a scenario, runs, replays, checks and verifies it, and keeps the books.

The package is also the function: `fedactors.run(scenario)` runs a scenario, `fedactors.run.replay` and its siblings are
modules. Heavy imports happen when training begins, so replaying and checking never load torch or ray.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A module that can be called, so that the package `run` does not hide the function users want."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a scenario; see `fedactors.run.conductor.run`."""
        from fedactors.run.conductor import run

        return run(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
