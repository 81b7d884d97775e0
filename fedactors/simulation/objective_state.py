"""The objective set of a run: it follows the arrivals and departures in the Plans, by the membership policy."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.algorithms.members.objective import Vanilla
from fedactors.algorithms.participation import Members, Scheme
from fedactors.errors import ScenarioError
from fedactors.plan import OUTCOME_CODES, Outcome, Plan
from fedactors.scenario.server_options import ServerOptions
from fedactors.simulation.assigned_scenario import AssignedScenario

OPEN = ("auto", "lookahead")  # policies that decide case by case


class Verdict(NamedTuple):
    """What becomes of a device that left, and the numbers behind it."""

    exclude: bool
    numbers: Mapping[str, Any] = {}


class Move(NamedTuple):
    """An arrival or a departure that the objective has answered."""

    client: int
    event: str  # "arrival" or "departure"
    after: int  # tau_0: rounds done before it counts
    decision: str  # "include" or "exclude"
    numbers: Mapping[str, Any] = {}


class ObjectiveState(NamedTuple):
    """The objective as it counts in one round."""

    members: Members  # what p^k is a share of
    round: int  # number of the round since the objective last shifted, from 1
    factors: Mapping[int, float]  # what weights of devices that arrived are multiplied by, where it is not 1
    audience: NDArray[np.bool_]  # (clients,): whose hold-out data are the test set
    before: int  # members before this round's moves
    moves: tuple[Move, ...]

    def changed(self, event: str, decision: str) -> tuple[int, ...]:
        """Return who joined or left the objective in this round, ascending."""
        return tuple(sorted(m.client for m in self.moves if (m.event, m.decision) == (event, decision)))


Decide = Callable[["Objective", int, int], Verdict]  # (the objective until now, client, rounds done)


def membership_of(server: ServerOptions) -> Vanilla:
    """Return the membership policy of a scenario that has one. Raises ScenarioError if it has none."""
    if server.membership is None:
        raise ScenarioError("server.membership: the objective follows arrivals and departures only if it is given")
    return server.membership


class Objective:
    """The objective set C, from Plan to Plan.

    An arrival counts from the first round that opens after it. A departure counts from the first aggregate without an
    update of the device. Clients that are present when the first round opens belong to C from the start. A device
    without work never belongs to it: it is never asked and has no loss.
    """

    def __init__(self, prepared: AssignedScenario) -> None:
        self.follow(prepared.scenario.server)
        self._people = prepared.population
        self._held = prepared.held
        self._works = prepared.workload_table.has_work
        self.inside: NDArray[np.bool_] = np.zeros(len(self._people), bool)  # C; replaced when it changes
        self._gone: tuple[int, ...] = ()  # departed and yet in C
        self._joined: Mapping[int, int] = {}  # client -> its tau_0
        self._late: tuple[int, ...] = ()  # arrived in the last round, after it had opened
        self._leaving: tuple[int, ...] = ()  # departed in the last round, with an update in its aggregate
        self._base = self._next_base = 0
        self._begun = False
        self._arrived: Mapping[int, int] = {}  # client -> when, of those whose behaviours said so
        self._departed: Mapping[int, int] = {}

    def follow(self, server: ServerOptions) -> None:
        """Go by the rules of `server` from the next plan on. Raises ScenarioError if it has no membership policy."""
        self._policy = membership_of(server)
        own_members = isinstance(server.participation, Scheme) and server.participation.weights != "share_of_asked"
        self._lot = server.cohort != "all" and not own_members

    def fork(self) -> Objective:
        """Return a copy that changes independently."""
        return copy.copy(self)  # its attributes are replaced, never changed in place

    @property
    def size(self) -> int:
        """Number of members, N."""
        return int(self.inside.sum())

    @property
    def base(self) -> int:
        """Rounds done when the rate last began anew."""
        return self._base

    def share(self, client: int) -> float:
        """Return p^k."""
        return float(self._held[client] / self._held[self.inside].sum())

    def asks(self, plan: Plan) -> bool:
        """Say whether the objective of `plan` may need a decision that the policy leaves open."""
        return self._policy.departures in OPEN and bool(self._leaving or plan.departed)

    def at(self, plan: Plan, decide: Decide) -> ObjectiveState:
        """Return the objective of `plan`, the next one; `decide` is called for every departure."""
        if not self._begun:
            self._begun = True
            here = (self._people.arrive <= plan.opened) & (self._people.depart > plan.opened)
            self.inside = here & self._works
        self._base = max(self._base, self._next_base)
        self._note_instants(plan)
        before = self.size
        moves = (*self._arrivals(plan), *self._departures(plan, decide))
        sent = plan.version + 1 - self._base
        return ObjectiveState(self._members(plan), sent, self._factors(plan), self.inside, before, moves)

    def _arrivals(self, plan: Plan) -> list[Move]:
        """Take in those who were there when this plan opened; those who came later wait for the next."""
        new = [client for client in plan.arrived if self._works[client] and not self.inside[client]]
        here = (client for client in (*self._late, *new) if self._is_there(client, plan.opened))
        self._late = tuple(client for client in new if self._arrival(client) > plan.opened)
        return [self._join(client, plan.version) for client in sorted(here)]

    def _note_instants(self, plan: Plan) -> None:
        """Note when devices moved whose behaviours said so."""
        if plan.moves is None:
            return
        instants = plan.moves.instants
        self._arrived = {**self._arrived, **dict(zip(plan.arrived, instants, strict=False))}
        self._departed = {**self._departed, **dict(zip(plan.departed, instants[len(plan.arrived) :], strict=True))}

    def _is_there(self, client: int, time: int) -> bool:
        return self._arrival(client) <= time < self._departure(client)

    def _arrival(self, client: int) -> int:
        return self._arrived.get(client, int(self._people.arrive[client]))

    def _departure(self, client: int) -> int:
        return self._departed.get(client, int(self._people.depart[client]))

    def _join(self, client: int, done: int) -> Move:
        self.inside = self.inside.copy()
        self.inside[client] = True
        self._joined = {**self._joined, client: done}
        self._shift(done, sent=False)
        return Move(client, "arrival", done, "include")

    def _departures(self, plan: Plan, decide: Decide) -> list[Move]:
        """Let go of those who left before this plan's aggregate; those whose update is in it leave after it."""
        heard = _heard(plan)
        new = [client for client in plan.departed if self.inside[client]]
        now = dict.fromkeys(self._leaving, False)
        now |= {client: self._departure(client) > plan.opened for client in new if client not in heard}
        self._leaving = tuple(client for client in new if client in heard)
        return [self._leave(client, plan.version, decide, sent=sent) for client, sent in sorted(now.items())]

    def _leave(self, client: int, done: int, decide: Decide, *, sent: bool) -> Move:
        verdict = decide(self, client, done)
        if not verdict.exclude:
            self._gone = (*self._gone, client)
            return Move(client, "departure", done, "include", verdict.numbers)
        self.inside = self.inside.copy()
        self.inside[client] = False
        self._joined = {other: after for other, after in self._joined.items() if other != client}
        self._shift(done, sent=sent)
        return Move(client, "departure", done, "exclude", verdict.numbers)

    def _shift(self, done: int, *, sent: bool) -> None:
        """Begin the rate anew after `done` rounds, or one later if this round's has been sent."""
        if not self._policy.reset_rate:
            return
        if sent:
            self._next_base = done + 1
        else:
            self._base = done

    def _members(self, plan: Plan) -> Members:
        """Return N and n of C; where a cohort is drawn by lot it stands for all who are there."""
        clients, samples = self.size, int(self._held[self.inside].sum())
        if not self._lot:
            return Members(clients, samples)
        asked = plan.orders.client
        gone = int(self._held[list(self._gone)].sum())
        more = clients / max(1, clients - len(self._gone)), samples / max(1, samples - gone)
        return Members(len(asked) * more[0], int(self._held[asked].sum()) * more[1])

    def _factors(self, plan: Plan) -> dict[int, float]:
        found = {client: self._policy.factor(plan.version - after) for client, after in self._joined.items()}
        return {client: factor for client, factor in found.items() if factor != 1.0}


def recorded(row: Mapping[str, Any]) -> Decide:
    """Return who decides as is written in a row of metrics."""
    said = {move["client"]: move for move in row.get("moves", ()) if move["event"] == "departure"}
    return lambda objective, client, done: Verdict(said[client]["decision"] == "exclude", said[client]["numbers"])


def settled(policy: str) -> Decide:
    """Return who decides by a policy that leaves nothing open."""
    return lambda objective, client, done: Verdict(policy == "exclude")


def _heard(plan: Plan) -> set[int]:
    """Return the clients whose updates arrived in time, also those that were set aside since."""
    arrived = plan.orders.is_heard | (plan.orders.outcome == OUTCOME_CODES[Outcome.QUARANTINED])
    return set(plan.orders.client[arrived].tolist())
