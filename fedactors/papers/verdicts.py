"""What can be said of a claim: four verdicts, and the floor that models must have passed to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from fedactors.simulation.record.learning_curve import WINDOW


class ClaimVerdict(str, Enum):
    """What was found of a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_LEARNT = "not learnt"  # a figure is missing, or a model that is compared did not pass its floor
    TOO_CLOSE = "too close to tell"  # the interval of the difference over seeds reaches to both sides


class SeedMean(NamedTuple):
    """A mean over seeds, and half its interval; none of one seed."""

    mean: float
    half: float | None
    seeds: int


class Claim(NamedTuple):
    """A statement of a paper, what we found, and the verdict; those not `asserted` are reported only."""

    text: str
    ours: str
    verdict: ClaimVerdict
    asserted: bool = True
    margin: SeedMean | None = None  # how far on the claim's side, where that is a number
    paper: float | None = None  # a number that the paper prints
    found: SeedMean | None = None  # the same number here

    @property
    def holds(self) -> bool:
        """Whether the claim holds."""
        return self.verdict is ClaimVerdict.HOLDS

    @property
    def refuted(self) -> bool:
        """Whether an experiment with this claim has failed."""
        return self.asserted and self.verdict in (ClaimVerdict.FAILS, ClaimVerdict.NOT_LEARNT)


class Floor(NamedTuple):
    """What a run must have reached for its figures to count: a measure at `value` or beyond, after `rounds` rounds.

    `rounds` is the window over which accuracies are averaged unless something shorter is measured.
    """

    value: float
    measure: str = "accuracy"
    rounds: int = WINDOW
    most: bool = False  # the measure must be at most `value`, such as a loss; else at least
    where: Mapping[str, str | int | float] | None = None  # labels of the runs meant; all if None

    def meets(self, at: Mapping[str, str | int | float]) -> bool:
        """Say whether this floor is meant for a run at labels `at`."""
        return all(at.get(axis) == label for axis, label in (self.where or {}).items())

    def fault(self, rounds: int, found: float | None) -> str:
        """Return why a run of so many rounds did not learn; nothing if it did."""
        if rounds < self.rounds:
            return f"{rounds} rounds of the {self.rounds} that are needed"
        if found is None:
            return f"no {self.measure}"
        passed = found <= self.value if self.most else found >= self.value
        said = "above" if self.most else "below"
        return "" if passed else f"{self.measure} {found:.3g} is {said} {self.value:g}"


def succeeded(claims: list[Claim]) -> bool:
    """Say whether an experiment shows what it asserts: a claim holds, and none fails or was not learnt."""
    asserted = [claim for claim in claims if claim.asserted]
    return any(claim.holds for claim in asserted) and not any(claim.refuted for claim in asserted)
