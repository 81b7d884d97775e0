"""Oort: Lai, Zhu, Madhyastha and Chowdhury, Oort: Efficient Federated Learning via Guided Participant Selection, 2021.

Algorithm 1, with E the clients heard before, U(i) their statistical utility, L(i) the selection they were last heard
after, D(i) their duration, T the preferred duration, and R the number of this selection:

    if sum U over the last W selections < sum U over the W before:  T <- T + Delta            # pacer
    for i in E:  Util(i) <- u(i) + sqrt(0.1 log R / L(i)) ;  if T < D(i): Util(i) <- Util(i) (T / D(i))^alpha
    admit those of E with Util >= c Util of the ((1 - eps) K)-th ; draw (1 - eps) K of them, odds Util
    draw eps K of those not in E, odds 1 / D                                                  # exploration
    U(i) = |B_i| sqrt( (1/|B_i|) sum_{k in B_i} Loss(k)^2 )                                   # section 4.2
    u(i) = (min(U(i), top) - low) / max(high - low, 1e-4)                                     # the authors' code

with top the 95th percentile of the U of those of E that can be asked, at which section 4.4 cuts them, high the largest
and low 0.999 of the least: U itself, which grows with samples and losses, would leave the second term without effect.
eps begins at 0.9 and is multiplied by 0.98 per selection down to 0.2; alpha = 2, W = 20, c = 95 %. As in the authors'
code T is a percentile of all durations and the pacer moves the percentile. A client that was heard `most` times is no
longer preferred (section 4.4).

Deviations: in place of the loss of a sample stands that of its mini-batch, because a client's local steps give no
others; durations are those of an undisturbed trip, which Oort would estimate; where one pool is too small, the rest is
drawn from the other. eps K is rounded, and where it is below 1 one client is explored with that probability (the
authors' code rounds up). The pacer moves on after each aggregation, and only when utility falls. A client that was
asked and never heard stays outside E (the authors' simulator gives it the mean utility of its round).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedactors.clock.availability import Int64
from fedactors.clock.selections.base import Clients, Loss, Selection, Selector
from fedactors.plan import Plan


class Oort(Selection):
    """Ask those from whom most can be learned in a given time."""

    steers: ClassVar[bool] = True

    name: Literal["oort"] = "oort"
    exploration: float = Field(default=0.9, ge=0.0, le=1.0)
    """Share of clients that are asked for the first time, at the beginning (eps)."""
    decay: float = Field(default=0.98, gt=0.0, le=1.0)
    """What that share is multiplied by at every selection."""
    least_exploration: float = Field(default=0.2, ge=0.0, le=1.0)
    """What it does not fall below."""
    penalty: float = Field(default=2.0, ge=0.0)
    """How strongly slow clients are disfavoured (alpha)."""
    preferred: float = Field(default=30.0, ge=0.0, le=100.0)
    """Percentile of all durations that is preferred at first (T)."""
    pace: float = Field(default=5.0, ge=0.0, le=100.0)
    """By how much the percentile is raised when utility falls (Delta)."""
    window: int = Field(default=20, ge=1)
    """Selections over which utility is compared (W)."""
    cut_off: float = Field(default=0.95, ge=0.0, le=1.0)
    """Admitted are those with this share of the utility that just suffices (c)."""
    most: int | None = Field(default=None, ge=1)
    """Times after which a client is no longer preferred."""

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return OortSelector(self, clients)


class OortSelector:
    """Holds the utility of each client."""

    def __init__(self, options: Oort, clients: Clients) -> None:
        self._o = options
        self._clients = clients
        self._utility = np.full(len(clients.samples), np.nan)  # U; NaN for those not in E
        self._last = np.zeros(len(clients.samples))
        self._times = np.zeros(len(clients.samples))
        self._number = 0  # R
        self._percentile = options.preferred
        self._gained: list[float] = []  # sum of U by selection

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return `count` of `candidates`."""
        options = self._o
        self._number += 1
        if count >= len(candidates):
            return candidates
        known = ~np.isnan(self._utility[candidates])
        if options.most is not None:
            known &= self._times[candidates] < options.most
        old, new = candidates[known], candidates[np.isnan(self._utility[candidates])]
        share = max(options.exploration * options.decay ** (self._number - 1), options.least_exploration)
        wanted = share * count
        explored = round(wanted) if wanted >= 1.0 else int(random.random() < wanted)
        explored = min(len(new), max(explored, count - len(old)))
        chosen = self._exploit(old, min(count - explored, len(old)), random)
        chosen = np.concatenate([chosen, _drawn(new, explored, 1.0 / self._clients.times[new], random)])
        rest = np.setdiff1d(candidates, chosen)
        return np.concatenate([chosen, _drawn(rest, count - len(chosen), np.ones(len(rest)), random)])

    def learned(self, plan: Plan, losses: Mapping[int, Loss]) -> None:
        """Update the utility of the clients heard."""
        for client, loss in losses.items():
            self._utility[client] = self._clients.samples[client] * sqrt(loss.square)
            self._last[client] = max(self._number, 1)
            self._times[client] += 1
        self._gained.append(float(sum(self._utility[client] for client in losses)))
        self._pace()

    def _pace(self) -> None:
        """Raise the preferred duration when the utility of the last window is below that of the one before."""
        window = self._o.window
        if len(self._gained) >= 2 * window and not len(self._gained) % window:
            now, before = sum(self._gained[-window:]), sum(self._gained[-2 * window : -window])
            self._percentile = min(100.0, self._percentile + self._o.pace * (now < before))

    def _exploit(self, clients: Int64, count: int, random: np.random.Generator) -> Int64:
        """Return `count` of `clients`, all of them known, by utility."""
        if not count:
            return clients[:0]
        preferred = float(np.percentile(self._clients.times, self._percentile))
        utility = _scaled(self._utility[clients]) + np.sqrt(0.1 * log(self._number) / self._last[clients])
        slow = self._clients.times[clients] > preferred
        utility[slow] *= (preferred / self._clients.times[clients][slow]) ** self._o.penalty
        enough = np.sort(utility)[-count] * self._o.cut_off
        admitted = utility >= enough
        return _drawn(clients[admitted], count, utility[admitted], random)


def _scaled(utility: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what is about 0 for the least and 1 for the largest `utility`, cut at the 95th percentile."""
    cut = int(len(utility) * 0.95)
    low = utility.min() * 0.999
    clipped = np.minimum(utility, np.partition(utility, cut)[cut])
    scaled: NDArray[np.float64] = (clipped - low) / max(utility.max() - low, 1e-4)
    return scaled


def _drawn(clients: Int64, count: int, odds: np.ndarray, random: np.random.Generator) -> Int64:
    """Return `count` of `clients` without replacement, with odds; alike where these are all 0."""
    if count >= len(clients):
        return clients
    odds = np.maximum(odds, 0.0) + 1e-12 * max(float(odds.max()), 1e-12)
    return clients[random.choice(len(clients), count, replace=False, p=odds / odds.sum(), shuffle=False)]
