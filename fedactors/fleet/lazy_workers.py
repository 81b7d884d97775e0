"""The workers of a fleet by name: to import torch takes seconds, and the driver of a run on Ray does without it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class LazyWorker:
    """The class of that name in a module of `fedactors.fleet`, imported in the process that makes an object."""

    name: str
    module: str = "workers"

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *args: Any) -> Any:
        """Return an object of the class."""
        return getattr(import_module(f"fedactors.fleet.{self.module}"), self.name)(*args)


CLIENT_HOST = LazyWorker("ClientHost")
SERVER = LazyWorker("ServerWorker")
CENTRAL_HOST = LazyWorker("CentralHost")
EVALUATOR = LazyWorker("Evaluator", "evaluator")
