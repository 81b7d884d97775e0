"""How long `check` may take, and what it estimates because the exact answer takes longer.

Seconds are the processor time of this process, so that what is said does not depend on what else the machine does.
"""

from __future__ import annotations

import sys
import time

from fedactors.clock.synthetic_availability import affordable, drawing_seconds, whole
from fedactors.plan import SECOND
from fedactors.scenario.model import Scenario
from fedactors.scenario.synthetic_behaviour import SyntheticBehaviour

SECONDS = 5.0  # by default
_LAWS = 0.4  # of the budget, for drawing windows
_ROUNDS = 0.7  # of the budget, by whose end rounds are replayed
_LEAST = 0.1  # of the budget, for replaying rounds whatever came before


class Budget:
    """The processor seconds that a check may still take, from when this is made; and `costly`, what was estimated."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._began = time.process_time()
        self._torch = "torch" in sys.modules
        self.costly: list[str] = []

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.process_time() - self._began

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
        """Seconds for replaying rounds; some, even where what came before has taken all of them."""
        return max(self.seconds * _LEAST, self.seconds * _ROUNDS - self.spent)

    def note_preparation(self) -> None:
        """Say what took long before rounds are replayed, if that was more than all of the budget."""
        if self.spent > self.seconds:
            imported = not self._torch and "torch" in sys.modules  # code of the user needs it
            first = "importing PyTorch, " if imported else ""
            self.note(f"{first}reading recordings and preparing takes {self.spent:.0f} s of processor time")

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
