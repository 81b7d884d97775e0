"""Which clients the server asks, of those it could ask: a policy of its own, chosen as `server.selection`.

    uniform        at random, every client with the same probability
    samples        at random, with odds proportional to sample counts (McMahan et al. 2017's weights as odds); with
                   `participation: samples` beside it, clients count about as their samples squared
    round-robin    one after the other by number, so that no client is asked twice before all others are asked once

Others are in files of their own. power_of_choice, oort and tifl use the losses of training: they `steer`, and a run
under them waits for the losses of a round before it draws the next one. refl and availability_aware use what was seen
of the devices until now (`History`), and nothing that comes later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.availability import Int64
from fedactors.clock.selections.history import NOTHING_SEEN, History
from fedactors.errors import ScenarioError, shortened
from fedactors.options import Options
from fedactors.own_code.global_draws import undrawn
from fedactors.own_code.user_errors import class_called, is_own
from fedactors.plan import NEVER, Plan, Time


class Loss(NamedTuple):
    """What is known of a trip's training: over its local steps, each with the mean loss of its batch."""

    mean: float
    square: float  # mean of squares


class Stages(NamedTuple):
    """Of what an undisturbed trip consists, in columns `(clients,)`, ns."""

    download: Int64
    compute: Int64
    upload: Int64


class Clients(NamedTuple):
    """What a selection may know of the clients, in columns `(clients,)`."""

    samples: Int64
    times: Int64  # ns that a trip takes undisturbed
    stages: Stages | None = None  # of those times; None: not known
    deadline: Time = NEVER  # ns after which a round closes
    history: History = NOTHING_SEEN  # when they were on, until now
    groups: tuple[tuple[str, int], ...] = ()  # name and devices of each population group, in the order of clients

    def of(self, members: Int64) -> Clients:
        """Return what is known of some clients, ascending, who then have numbers of their own; without a history."""
        stages = self.stages and Stages(*(column[members] for column in self.stages))
        ends = np.cumsum([count for _, count in self.groups])
        counts = np.diff(np.searchsorted(members, ends), prepend=0).tolist()
        groups = tuple((name, n) for (name, _), n in zip(self.groups, counts, strict=True) if n)
        return Clients(self.samples[members], self.times[members], stages, self.deadline, groups=groups)


class Selector(Protocol):
    """A selection at work in one run."""

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return 1 to `count` of `candidates`, which are ascending and not empty; in any order.

        `version` is the number of the model that they get; at an edge, of the edge's rounds that asked before.
        """
        ...


class SteeringSelector(Selector, Protocol):
    """A selection at work that looks at losses."""

    def learned(self, plan: Plan, losses: Mapping[int, Loss]) -> None:
        """Receive the losses of the clients heard in `plan`."""
        ...


def started(selection: Selection, clients: Clients) -> Selector:
    """Return a selection at work, a `SteeringSelector` if the selection `steers`.

    Raises ScenarioError, with the file of its class, if it receives losses and does not say that a run has to wait for
    them, or the other way round.
    """
    with _watched(selection, "start"):
        selector = selection.start(clients)
    if hasattr(selector, "learned") == selection.steers:
        return selector
    working, chosen = class_called(type(selector)), class_called(type(selection))
    if selection.steers:
        raise ScenarioError(
            f"server.selection: {chosen} says that it looks at losses (steers), but {working} does not define learned,"
            " which receives them (accepted: learned(self, plan, losses) there; or no steers)"
        )
    raise ScenarioError(
        f"server.selection: {working} defines learned, which receives losses, but {chosen} does not say that it looks"
        " at losses, so that it would get none (accepted: steers: ClassVar[bool] = True in the class of the selection;"
        " or no learned)"
    )


def choice_of(selector: Selector, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
    """Return whom `selector` chooses, ascending.

    Raises ScenarioError, with the file of its class, if that is not 1 to `count` different ones of `candidates`, or if
    a class of the user's draws its first choice by a generator that all of the process shares.
    """
    given = candidates.copy() if is_own(selector) else candidates  # which may be shuffled where it is
    with _watched(selector, "choose") if version == 0 else nullcontext():
        found = selector.choose(given, count, version, random)
    chosen = np.asarray(found)
    if chosen.ndim == 1 and not len(chosen):
        raise _refused(selector, version, "nobody", count)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise _refused(selector, version, shortened(repr(found)), count)
    chosen = np.sort(chosen.astype(np.int64))
    if len(chosen) > count:
        raise _refused(selector, version, f"{len(chosen):,} clients", count)
    place = np.minimum(np.searchsorted(candidates, chosen), len(candidates) - 1)
    if (strange := candidates[place] != chosen).any():
        raise _refused(selector, version, f"{chosen[strange][0]}, which cannot be asked now", count)
    if (again := chosen[1:] == chosen[:-1]).any():
        raise _refused(selector, version, f"{chosen[1:][again][0]} more than once", count)
    return chosen


def _watched(own: object, method: str) -> AbstractContextManager[None]:
    """Return a context in which a method of a class of the user's may not use generators that all of a process shares.

    Only what happens before the first round is watched: later, other threads of the process may use them.
    """
    if not is_own(own):
        return nullcontext()
    return undrawn(f"{class_called(type(own))}.{method}", "those of `random`, the generator that choose is given")


def _refused(selector: Selector, version: int, found: str, count: int) -> ScenarioError:
    return ScenarioError(
        f"{class_called(type(selector))}.choose in round {version + 1}: returned {found}"
        f" (accepted: 1 to {count:,} different ones of the candidates, an array of integers)"
    )


class Selection(Options):
    """Base of all selections."""

    steers: ClassVar[bool] = False
    """Whether it looks at losses, so that a run has to wait for them: then `start` returns a `SteeringSelector`."""
    even: ClassVar[bool] = False
    """Whether clients that can be asked are asked as often as each other."""
    draws_by_samples: ClassVar[bool] = False
    """Whether clients are drawn with odds of their samples, so that a plain mean of updates weighs them by samples."""

    name: str

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work at the beginning of a run."""
        raise TypeError(f"{type(self).__name__} does not define how it selects")

    def chances(self, clients: Clients, candidates: Int64, count: int) -> NDArray[np.float64] | None:
        """Return the probability with which each of `candidates` is among `count` that are asked.

        None where that is not known, or the same for all: only `even` selections and those that say it go with weights
        that are unbiased.
        """
        return None

    def problem(self, groups: Sequence[str], among: str, participation: Any) -> str:
        """Say why a selection does not fit the population groups, `server.among` or `server.participation`, if so."""
        says_chances = type(self).chances is not Selection.chances
        if self.even or says_chances or getattr(participation, "weights", "") != "unbiased":
            return ""
        return (
            f"name: {self.name} asks some clients more often than others, and does not know by how much, so that"
            " participation.weights: unbiased cannot make up for it (accepted: uniform, round-robin, importance, whose"
            " option samples: 1.0 is for odds by samples)"
        )


class UniformSelection(Selection):
    """Everybody has the same chance."""

    even: ClassVar[bool] = True

    name: Literal["uniform"] = "uniform"

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return UniformSelector()


class SampleSelection(Selection):
    """Chances are proportional to sample counts."""

    draws_by_samples: ClassVar[bool] = True

    name: Literal["samples"] = "samples"

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return WeightedSelector(clients.samples)


class RoundRobinSelection(Selection):
    """Clients take turns by number; those that cannot be asked when it is their turn are passed over."""

    even: ClassVar[bool] = True

    name: Literal["round-robin"] = "round-robin"

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return RoundRobinSelector()


class UniformSelector:
    """Draws without replacement, every client with the same probability."""

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return `count` of `candidates`."""
        return candidates if count >= len(candidates) else candidates[self.places(len(candidates), count, random)]

    @staticmethod
    def places(candidates: int, count: int, random: np.random.Generator) -> Int64:
        """Return which `count` of so many `candidates` are drawn, in any order; there are more of them."""
        return random.choice(candidates, count, replace=False, shuffle=False)


class WeightedSelector(UniformSelector):
    """Draws without replacement, with odds."""

    def __init__(self, weights: Int64) -> None:
        self._weights = weights.astype(float)

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return `count` of `candidates`."""
        if count >= len(candidates):
            return candidates
        odds = self._weights[candidates]
        return candidates[random.choice(len(candidates), count, replace=False, p=odds / odds.sum(), shuffle=False)]


class RoundRobinSelector(UniformSelector):
    """Draws clients by number, from the one behind the last."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return the next `count` of `candidates`."""
        start = int(np.searchsorted(candidates, self._next))
        chosen = np.concatenate([candidates[start:], candidates[:start]])[:count]
        self._next = int(chosen[-1]) + 1
        return chosen
