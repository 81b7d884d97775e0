"""Which scenario held in which rounds of a run: a branch has one from where it begins, and others before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from fedactors.plan import NEVER
from fedactors.scenario.model import Scenario

T = TypeVar("T")


class Era(NamedTuple):
    """A scenario that does not hold any more."""

    rounds: int  # that were done when it ended
    scenario: Scenario


class Eras(NamedTuple):
    """The scenarios of a run: those of the `past`, in their order, and the one that holds `now`."""

    past: tuple[Era, ...]
    now: Scenario

    def each(self, make: Callable[[Scenario], T]) -> Callable[[int], T]:
        """Return what gives, for a version, what is made of the scenario that held in its round; made once for each."""
        made = [*((era.rounds, make(era.scenario)) for era in self.past), (NEVER, make(self.now))]
        return lambda version: next(one for until, one in made if version < until)

    def since(self, part: Callable[[Scenario], Any]) -> int:
        """Return after how many rounds a part of the scenario became what it is now; 0 if it has always been that."""
        now = part(self.now)
        return max((era.rounds for era in self.past if part(era.scenario) != now), default=0)
