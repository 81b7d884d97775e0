"""Makes the behaviours that a scenario names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fedactors.clock.behaviours.base import Behaviour
from fedactors.errors import ScenarioError
from fedactors.own_code.user_code import telling
from fedactors.scenario.costs.energy_options import Consumption
from fedactors.scenario.model import Scenario
from fedactors.scenario.process_behaviour import ProcessBehaviour


@dataclass(frozen=True)
class BehavingGroup:
    """Devices whose availability is a process."""

    first: int  # client
    count: int
    make: Callable[[], Behaviour]  # makes the behaviour of one run
    arrives: bool = False  # whether devices join only when their behaviour says so


def behaving_groups(scenario: Scenario) -> list[BehavingGroup]:
    """Return the groups whose availability is a process. Raises ScenarioError if a behaviour cannot be made."""
    found = []
    first = 0
    for number, group in enumerate(scenario.population):
        if isinstance(group.availability, ProcessBehaviour):
            where = f"population.{number}.availability.behaviour"
            make = partial(behaviour_of, group.availability, where, group.energy)
            found.append(BehavingGroup(first, group.count, make, arrives=make().arrives))
        first += group.count
    return found


def behaviour_of(options: ProcessBehaviour, where: str, energy: Consumption | None = None) -> Behaviour:
    """Return a new behaviour of devices that consume `energy`.

    Raises ScenarioError, which begins with `where`, if it cannot be made or is none.
    """
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
        made.consumption = energy
        made.check_consumption()
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ScenarioError(f"{where}: {options.behaviour}: {' '.join(str(error).split())[:300]}") from error
    return made
