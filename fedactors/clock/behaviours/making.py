"""Makes the behaviour that a scenario names."""

from __future__ import annotations

import inspect

from fedactors.clock.behaviours.base import Behaviour
from fedactors.errors import ScenarioError
from fedactors.scenario.process_behaviour import ProcessBehaviour
from fedactors.user_code import telling


def behaviour_of(options: ProcessBehaviour, where: str) -> Behaviour:
    """Return a new behaviour. Raises ScenarioError, which begins with `where`, if it cannot be made or is none."""
    with telling(options.behaviour, "cannot be made:", ScenarioError):
        found = options.behaviour.load()
    if not (isinstance(found, type) and issubclass(found, Behaviour)):
        accepted = "a subclass of fedactors.clock.behaviours.base.Behaviour"
        raise ScenarioError(f"{where}: {options.behaviour} is no behaviour (accepted: {accepted})")
    if inspect.isabstract(found) or not inspect.isgeneratorfunction(found.play):
        raise ScenarioError(
            f"{where}: {options.behaviour} has no generator `play(self, device)` (accepted: one that yields)"
        )
    try:
        made: Behaviour = found(**options.arguments)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ScenarioError(f"{where}: {options.behaviour}: {' '.join(str(error).split())[:300]}") from error
    return made
