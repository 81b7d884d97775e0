"""How long `check` may take, and what it estimates because the exact answer takes longer."""

from __future__ import annotations

import time

from fedactors.clock.synthetic_availability import affordable, drawing_seconds, whole
from fedactors.plan import SECOND
from fedactors.scenario.model import Scenario
from fedactors.scenario.synthetic_behaviour import SyntheticBehaviour

SECONDS = 5.0  # by default
_LAWS = 0.4  # of the budget, for drawing windows
_ROUNDS = 0.7  # of the budget, by whose end rounds are replayed


class Budget:
    """The seconds that a check may still take, from when this is made; and `costly`, what was estimated, in words."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._began = time.perf_counter()
        self.costly: list[str] = []

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._began

    @property
    def left(self) -> float:
        """Seconds that are left; not negative."""
        return max(0.0, self.seconds - self.spent)

    @property
    def for_laws(self) -> float:
        """Seconds for drawing the windows of all groups."""
        return self.seconds * _LAWS

    @property
    def for_rounds(self) -> float:
        """Seconds for replaying rounds; not negative."""
        return max(0.0, self.seconds * _ROUNDS - self.spent)

    def note(self, text: str) -> None:
        """Say that something takes long, and what an estimate rests on."""
        self.costly.append(text)


def slow_laws(scenario: Scenario, seconds: float) -> list[str]:
    """Return, for each group whose windows take longer to draw than its share of `seconds`, what that means."""
    found = []
    share = seconds / len(scenario.population)
    for number, group in enumerate(scenario.population):
        law = group.availability
        if not isinstance(law, SyntheticBehaviour) or drawing_seconds(law, group.count) <= share:
            continue
        each = sum(whole(law)) // (law.mean_on + law.mean_off)
        hours = affordable(law, group.count, share).end / (3600 * SECOND)
        found.append(
            f"population.{number}.availability: {each:,} windows for each device take about"
            f" {drawing_seconds(law, group.count):.0f} s to draw in every run and replay; what is said of rounds is an"
            f" estimate from {hours:.2g} h of them"
        )
    return found
