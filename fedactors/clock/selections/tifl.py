"""TiFL: Chai et al., TiFL: A Tier-based Federated Learning System, 2020.

Clients are sorted into tiers by how long they take; a round asks clients of one tier, so that none waits for another.

    static:                   draw a tier with given probabilities, then |C| of its clients by lot
    adaptive (Algorithm 2):   Credits_t for each tier, how often it may be drawn ; equal probabilities at first
        every I rounds, if A_t^r <= A_t^{r-I} for the current tier t:  ChangeProbs
        draw a tier with Credits_t > 0 ;  Credits_t <- Credits_t - 1 ; |C| of its clients by lot
    ChangeProbs: of the n tiers that have credits, by ascending accuracy, the i-th gets (n - i + 1) / D,
        D = n (n + 1) / 2

Deviations: tiers have as equal numbers of clients as can be, by the undisturbed times of their trips, and slow clients
are not left out. In place of a tier's test accuracy stands the mean loss of its clients' last trips, negative; a tier
never heard counts as the worst. Where a tier has too few clients that can be asked, the others come from the tiers next
to it. When no tier has credits any more, all have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fedactors.clock.availability import Int64
from fedactors.clock.selections.base import Clients, Loss, Selection, Selector
from fedactors.plan import Plan

Float64 = NDArray[np.float64]


class Tiers(Selection):
    """Ask clients of one tier, drawn with fixed probabilities."""

    name: Literal["tiers"] = "tiers"
    tiers: int = Field(default=5, ge=1, le=1_000)
    """Number of tiers."""
    probabilities: tuple[Annotated[float, Field(ge=0.0, le=1.0)], ...] | None = Field(default=None, strict=False)
    """How likely each tier is drawn, the fastest first; by default all alike."""

    @model_validator(mode="after")
    def _check_probabilities(self) -> Tiers:
        given = self.probabilities
        if given is not None and (len(given) != self.tiers or abs(sum(given) - 1.0) > 1e-6):
            raise ValueError(
                f"probabilities: found {len(given)} that add up to {sum(given):g} (accepted: one for each of the"
                f" {self.tiers} tiers, 1 in all)"
            )
        return self

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return TierSelector(clients, self.tiers, self.probabilities)


class TiFL(Selection):
    """Ask clients of one tier, more often of tiers that have learned less."""

    steers: ClassVar[bool] = True

    name: Literal["tifl"] = "tifl"
    tiers: int = Field(default=5, ge=1, le=1_000)
    """Number of tiers."""
    interval: int = Field(default=10, ge=1, le=1_000_000)
    """Selections between changes of the probabilities (I)."""
    credits: int | None = Field(default=None, ge=1, le=10_000_000)
    """How often each tier may be drawn (Credits_t); by default without limit."""

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return AdaptiveTierSelector(clients, self)


class TierSelector:
    """Knows the tier of each client."""

    def __init__(self, clients: Clients, tiers: int, probabilities: tuple[float, ...] | None) -> None:
        count = len(clients.times)
        self._tiers = tiers
        self._tier = np.zeros(count, np.int64)
        self._tier[np.argsort(clients.times, kind="stable")] = np.arange(count) * tiers // max(1, count)
        self._odds: Float64 = np.full(tiers, 1 / tiers) if probabilities is None else np.array(probabilities)

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return `count` of `candidates`, of one tier as far as it has so many."""
        tier_of = self._tier[candidates]
        there = np.bincount(tier_of, minlength=self._tiers) > 0
        tier = self._drawn(there, random)
        shuffled = random.permutation(len(candidates))
        nearest = np.argsort(np.abs(tier_of[shuffled] - tier), kind="stable")
        return candidates[shuffled[nearest[:count]]]

    def _drawn(self, there: NDArray[np.bool_], random: np.random.Generator) -> int:
        """Return a tier of those that are `there`; alike where none of them has a probability."""
        odds = np.where(there, self._odds, 0.0)
        odds = odds if odds.any() else there.astype(float)
        return int(random.choice(self._tiers, p=odds / odds.sum()))


class AdaptiveTierSelector(TierSelector):
    """Changes the probabilities by what was learned of each tier."""

    def __init__(self, clients: Clients, options: TiFL) -> None:
        super().__init__(clients, options.tiers, None)
        self._interval = options.interval
        self._credits = np.full(options.tiers, np.inf if options.credits is None else options.credits)
        self._loss = np.full(len(clients.times), np.nan)  # of each client's last trip
        self._course: list[Float64] = []  # mean loss of each tier, by selection
        self._current: int | None = None

    def learned(self, plan: Plan, losses: Mapping[int, Loss]) -> None:
        """Take in the losses of a round."""
        for client, loss in losses.items():
            self._loss[client] = loss.mean

    def _drawn(self, there: NDArray[np.bool_], random: np.random.Generator) -> int:
        self._course.append(self._losses())
        number, current = len(self._course) - 1, self._current
        if current is not None and not number % self._interval and self._learns_no_more(number, current):
            self._change()
        allowed = there & (self._credits > 0)
        self._current = super()._drawn(allowed if allowed.any() else there, random)
        self._credits[self._current] -= 1
        return self._current

    def _learns_no_more(self, number: int, tier: int) -> bool:
        """Whether the loss of a tier has not fallen since `interval` selections ago."""
        return bool(self._course[number][tier] >= self._course[number - self._interval][tier])

    def _losses(self) -> Float64:
        """Return the mean loss of each tier; infinite where nothing was heard."""
        heard = ~np.isnan(self._loss)
        counts = np.bincount(self._tier[heard], minlength=self._tiers)
        sums = np.bincount(self._tier[heard], self._loss[heard], minlength=self._tiers)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)

    def _change(self) -> None:
        """Give the tiers that have credits probabilities by their losses, the highest first."""
        rest = np.flatnonzero(self._credits > 0)
        count = len(rest)
        worst_first = rest[np.argsort(-self._course[-1][rest], kind="stable")]
        self._odds = np.zeros(self._tiers)
        self._odds[worst_first] = np.arange(count, 0, -1) / max(1, count * (count + 1) / 2)
