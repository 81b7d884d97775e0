"""The roles of a fleet by name: importing torch takes seconds, and what drives a run on Ray does without it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class LazyWorker:
    """The class of `fedactors.fleet.workers` of that name, which is imported where an object of it is made."""

    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *args: Any) -> Any:
        """Return an object of the class."""
        return getattr(import_module("fedactors.fleet.workers"), self.name)(*args)


CLIENT_HOST = LazyWorker("ClientHost")
SERVER = LazyWorker("ServerWorker")
CENTRAL_HOST = LazyWorker("CentralHost")
EVALUATOR = LazyWorker("Evaluator")
