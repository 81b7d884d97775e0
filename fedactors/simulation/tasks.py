"""From a Plan to the task that the fleet executes: the updates that count, their weights, and their chunks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedactors.algorithms.participation import Members, Scheme, Updates
from fedactors.clock.clock import Clock
from fedactors.clock.selections.base import Clients
from fedactors.fleet.messages import RoundTask
from fedactors.learning.algorithm import Round
from fedactors.learning.chunks import chunk_sizes
from fedactors.learning.training_task import Chunk
from fedactors.plan import Orders, Plan
from fedactors.scenario.server_options import ClientEvaluation
from fedactors.simulation.assigned_scenario import AssignedScenario, can_be_asked, with_work
from fedactors.simulation.objective_state import ObjectiveState
from fedactors.simulation.prepared import Prepared
from fedactors.streams import Purpose, stream

T = TypeVar("T")
Float64 = NDArray[np.float64]
_GROUP = 8  # clients whose full gradients are summed by one host at a time; part of the sum's bits


def task_of(
    plan: Plan,
    prepared: Prepared,
    device: str,
    *,
    last: bool,
    objective_state: ObjectiveState | None = None,
    heard_before: int = 0,
) -> RoundTask:
    """Return the task of `plan`; the model after the `last` one is always evaluated.

    `objective_state` is the objective as it counts in this round, where it follows arrivals and departures;
    `heard_before` are the rounds before it in which an update counted.

    Chunks depend on the Plan, the model and the device type, never on the number of hosts. An update whose weight is
    0 (an incomplete one under Scheme A) cannot change the model and is not computed.
    """
    server = prepared.scenario.server
    weights = weights_of(plan, prepared, objective_state)
    counting = weights != 0.0
    counted = Counted(plan.heard().take(counting), weights[counting])
    bases = tuple(sorted({*np.unique(counted.orders.base).tolist(), *_shares(plan)}))
    rates = [float(server.schedule.at(_scheduled_round(plan, base, objective_state))) for base in bases]
    return RoundTask(
        _facts(plan, prepared, counted, bases, objective_state)._replace(heard_before=heard_before),
        bases,
        _chunks(plan, prepared, device, counted, bases, rates),
        evaluate=last or _is_evaluated(plan, server.evaluate_every),
        oldest=plan.oldest,
        measured=_measured(plan, prepared),
        evaluated_clients=clients_to_evaluate(plan, prepared) if _evaluates(plan, server.evaluation, last=last) else (),
        audience=objective_state.audience if objective_state else None,
    )


def _facts(
    plan: Plan, prepared: Prepared, counted: Counted, bases: Sequence[int], objective_state: ObjectiveState | None
) -> Round:
    """Return what the server has to know of a round to aggregate."""
    server = prepared.scenario.server
    members, arrived, departed = _moved(plan, prepared, objective_state)
    return Round(
        version=plan.version,
        heard=len(counted.orders),
        weight=math.fsum(counted.weights.tolist()),
        lr=server.schedule.at(_scheduled_round(plan, plan.version, objective_state)),
        setting=prepared.setting,
        members=members,
        arrived=arrived,
        departed=departed,
        mixed=_mixed(plan, counted, bases) if server.timing.mixes else (),
        updates=_aged(plan, counted) if server.timing.deviation else (),
        exact=plan.tier is not None,
        steps=int(counted.orders.steps.sum()),
        server_lr=server.server_schedule.at(_scheduled_round(plan, plan.version)) if server.server_schedule else None,
        largest=float(counted.weights.max(initial=0.0)),
    )


def _aged(plan: Plan, counted: Counted) -> tuple[tuple[float, int], ...]:
    """Return the weight of each update that counts, and how many versions it is behind."""
    ages = (plan.version - counted.orders.base).tolist()
    return tuple(zip(counted.weights.tolist(), ages, strict=True))


def _scheduled_round(plan: Plan, base: int, objective_state: ObjectiveState | None = None) -> int:
    """Return which round of a schedule trips of a plan have that begin from model `base`.

    It is that of this model, counted from when an objective last shifted; at edges it is that of the edge.
    """
    if plan.tier is not None:
        return plan.tier.edge_round
    return base + (objective_state.round - plan.version if objective_state else 1)


def _evaluates(plan: Plan, evaluation: ClientEvaluation | None, *, last: bool) -> bool:
    """Whether single clients are evaluated after a plan."""
    return evaluation is not None and (last or _is_evaluated(plan, evaluation.every))


def clients_to_evaluate(plan: Plan, prepared: Prepared) -> tuple[int, ...]:
    """Return the clients evaluated after `plan`, ascending: drawn among those that belong to the population."""
    server = prepared.scenario.server
    people = prepared.population
    assert server.evaluation is not None
    wanted = server.evaluation.clients
    members = np.flatnonzero((people.arrive <= plan.closed) & (plan.closed < people.depart))
    if wanted == "all" or wanted >= len(members):
        return tuple(members.tolist())
    random = stream(prepared.scenario.seed, Purpose.CLIENT_EVALUATION, round=plan.version)
    return tuple(np.sort(random.choice(members, wanted, replace=False)).tolist())


def weights_of(plan: Plan, assigned: AssignedScenario, objective_state: ObjectiveState | None = None) -> Float64:
    """Return the weight of each update heard, `(heard,)`: its participation's, by how old the model is it began from.

    Those of devices that have just arrived are as the membership policy says.
    """
    orders = plan.heard()
    members = objective_state.members if objective_state else _members(plan, assigned)
    server = assigned.scenario.server
    shares: Sequence[float] = server.participation.weigh(_updates(orders, assigned), members)
    if isinstance(server.participation, Scheme):
        shares = _counted_over_all(shares, plan, assigned, members)
    ages, age_of = np.unique(plan.version - orders.base, return_inverse=True)
    by_age = np.array([server.timing.weight(age) for age in ages.tolist()], np.float64)
    weights: Float64 = np.array(shares, np.float64) * by_age[age_of]
    if server.timing.normalised and (total := math.fsum(weights.tolist())):  # where nothing counts, nothing is scaled
        weights *= math.fsum(shares) / total
    if objective_state is None or not objective_state.factors:
        return weights
    return weights * [objective_state.factors.get(client, 1.0) for client in orders.client.tolist()]


def _counted_over_all(
    shares: Sequence[float], plan: Plan, assigned: AssignedScenario, members: Members
) -> Sequence[float]:
    """Return the weights of a scheme: `shares`, those of the updates heard, as its option `weights` has them.

    Where the selection draws by odds, unbiased weights are p_k / pi_k, pi_k a client's probability to be asked; where
    it does not, they are N / S p_k.
    """
    server, asked = assigned.scenario.server, len(plan.orders)
    assert isinstance(server.participation, Scheme)
    if server.participation.weights == "unbiased":
        work = assigned.workload_table.all()
        candidates = np.flatnonzero(can_be_asked(plan, assigned))
        samples = np.where(work.wanted > 0, work.held, 0)
        clients = Clients(samples, np.zeros(len(samples), np.int64), groups=assigned.scenario.groups)
        chances = server.selection.chances(clients, candidates, asked)
        if chances is not None:
            of_heard = chances[np.searchsorted(candidates, plan.heard().client)]
            weights: list[float] = (np.asarray(shares) / of_heard).tolist()
            return weights
    return server.participation.counted(shares, members, asked)


def _moved(
    plan: Plan, prepared: Prepared, objective_state: ObjectiveState | None
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Return members before the moves of this plan, who joined and who left: of the objective, or of the population.

    Devices without work are none: they are never asked, and have no loss.
    """
    if objective_state is None:
        arrived, departed = (with_work(clients, prepared) for clients in (plan.arrived, plan.departed))
        after = plan.moves.members if plan.moves else prepared.members.at(plan.closed)
        return after - len(arrived) + len(departed), arrived, departed
    return (
        objective_state.before,
        objective_state.changed("arrival", "include"),
        objective_state.changed("departure", "exclude"),
    )


class Counted(NamedTuple):
    """The updates that count in a round, and their weights `(updates,)`."""

    orders: Orders
    weights: Float64


def _runs(rates: Float64, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield [first, end) of each run of trips with the same learning rate."""
    changes = first + 1 + np.flatnonzero(rates[first + 1 : end] != rates[first : end - 1])
    return pairwise([first, *changes.tolist(), end])


def _shares(plan: Plan) -> dict[int, float]:
    """Return what share of each model a plan of a tier is mixed from."""
    return {} if plan.tier is None else dict(plan.tier.mixed)


def _is_evaluated(plan: Plan, every: int) -> bool:
    """Whether the model after a plan is evaluated: of tiers, that of the cloud."""
    if plan.tier is not None:
        return plan.tier.edge < 0 and plan.tier.number % every == 0
    return (plan.version + 1) % every == 0


def _mixed(plan: Plan, counted: Counted, bases: Sequence[int]) -> tuple[float, ...]:
    """Return what share of each of the models `bases` is mixed into the server's."""
    if plan.tier is not None:
        shares = _shares(plan)
        return tuple(shares.get(base, 0.0) for base in bases)
    return tuple(math.fsum(counted.weights[counted.orders.base == base].tolist()) for base in bases)


def _chunks(
    plan: Plan, prepared: Prepared, device: str, counted: Counted, bases: tuple[int, ...], rates: Sequence[float]
) -> tuple[Chunk, ...]:
    """Return the chunks of a round: consecutive trips of one learning rate, as many as an engine trains at once.

    `rates` are those of trips that begin from each of `bases`.
    """
    ends = accumulate(chunk_sizes(len(counted.orders), prepared.model, device))
    active = tuple(np.unique(plan.orders.client).tolist()) if prepared.reallocates else ()
    base_of = np.searchsorted(bases, counted.orders.base)
    rate_of = np.array(rates)[base_of]
    runs = [run for first, end in pairwise([0, *ends]) for run in _runs(rate_of, first, end)]
    columns = (counted.orders.client, base_of, counted.orders.base, counted.orders.steps, counted.weights)
    clients, indices, versions, steps, weights = (column.tolist() for column in columns)
    return tuple(
        Chunk(
            version=plan.version,
            clients=tuple(clients[first:end]),
            model_indices=tuple(indices[first:end]),
            base_versions=tuple(versions[first:end]),
            steps=tuple(steps[first:end]),
            weights=tuple(weights[first:end]),
            lr=float(rate_of[first]),
            active=active,
            place=place,
            among=len(runs),
        )
        for place, (first, end) in enumerate(runs)
    )


def _measured(plan: Plan, prepared: Prepared) -> tuple[tuple[int, ...], ...]:
    """Return clients in groups, in a round whose dissimilarity is wanted.

    All that hold data; with a central learner only those heard, which began from this version.
    """
    server = prepared.scenario.server
    mixed = server.algorithm.centre in ("before", "beside")
    if server.dissimilarity_every is None or plan.version % server.dissimilarity_every:
        return ()
    heard = plan.heard()
    fresh = heard.client[heard.base == plan.version].tolist()
    clients = fresh if mixed else np.flatnonzero(prepared.held > 0).tolist()
    return tuple(tuple(clients[at : at + _GROUP]) for at in range(0, len(clients), _GROUP))


def _updates(orders: Orders, prepared: AssignedScenario) -> Updates:
    examples = prepared.workload_table.of(orders.client).samples(orders.steps)
    return Updates(prepared.held[orders.client], examples, orders.steps, orders.wanted)


def _members(plan: Plan, prepared: AssignedScenario) -> Members:
    """Return the set over which p^k is a share: everybody asked, heard or not, or all members of the population.

    Ruan et al. ask every device in every round; where a cohort is drawn by lot, it stands for all. Devices without work
    can never be asked, and are no members.
    """
    participation, held = prepared.scenario.server.participation, prepared.held
    if isinstance(participation, Scheme) and participation.weights != "share_of_asked":
        there = can_be_asked(plan, prepared)
        return Members(int(there.sum()), int(held[there].sum()))
    return Members(len(plan.orders), int(held[plan.orders.client].sum()))


def with_last(items: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """Yield each item with whether it is the last one."""
    waiting: list[T] = []
    for item in items:
        if waiting:
            yield waiting.pop(), False
        waiting.append(item)
    for item in waiting:
        yield item, True


def plans_of_clock(clock: Clock, rounds: int) -> Iterator[tuple[Plan, bool]]:
    """Yield the plans of a clock, each with whether it is the last one; certain unless the clock needs feedback."""
    if clock.steered:  # its next plan depends on this one's losses
        return ((plan, plan.version + 1 == rounds) for plan in clock)
    return with_last(clock)
