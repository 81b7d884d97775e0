"""Decides whether a device that left still counts: by a rule from estimates, or by running both futures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import isfinite

from fedactors.algorithms.members.departure import constants, exclude, excludes, fitted, least_include
from fedactors.fleet.pipeline import Pipeline
from fedactors.plan import SECOND, Plan
from fedactors.simulation.objective_state import OPEN, Decide, Objective, Verdict, membership_of, settled
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.record.metric_rows import MetricRows
from fedactors.simulation.run_tasks import RunTasks
from fedactors.simulation.tasks import with_last


def departure_decision(tasks: RunTasks, pipeline: Pipeline, before: Objective, rows: MetricRows) -> Decide:
    """Return the function that decides about the devices that left in one round, one after the other.

    `tasks` have been made for the rounds before, `before` is the objective before that round.
    """
    known: dict[int, bool] = {}
    prepared = tasks.prepared
    policy = membership_of(prepared.scenario.server).departures
    if policy not in OPEN:
        return settled(policy)

    def decide(objective: Objective, client: int, done: int) -> Verdict:
        if policy == "auto":
            return by_rule(prepared, pipeline, objective, client, done, rows)
        verdict = by_trying(tasks, pipeline, before, client, done, known)
        known[client] = verdict.exclude
        return verdict

    return decide


def by_rule(
    prepared: Prepared, pipeline: Pipeline, objective: Objective, client: int, done: int, rows: MetricRows
) -> Verdict:
    """Decide by Corollary 4.0.3 from the metrics of the `done` rounds so far, the last of which are in `rows`."""
    server = prepared.scenario.server
    if objective.size == 1:
        return Verdict(False, {"members": 1})  # the objective would be empty
    if (share := objective.share(client)) >= 1:
        return Verdict(False, {"share": share})  # the others hold no samples: there would be nothing to learn
    work = prepared.workloads[client]
    steps = work.wanted / work.unit  # E, in units of what counts as an update
    base = objective.base
    local = pipeline.local_optimum(client, server.schedule.rate(1), membership_of(server).trial_rounds)
    seen = [(row["round"] - base, row["loss"]) for row in rows if row["round"] > base and "loss" in row]
    course = fitted(seen, steps)
    gap = local["loss_device"] - local["loss_alone"]  # Gamma_l
    rough = local["loss_first"] > local["loss_device"]
    c = constants(course, steps, done - base, _rounds(prepared, rows, done) - base, share, gap, rough=rough)
    numbers = {"share": share, "gamma_l": gap, "rough": rough, **local, "floor": course.floor, **c._asdict()}
    return Verdict(excludes(c), {**numbers, "f0": least_include(c), "f1": exclude(c.rounds, c)})


def _rounds(prepared: Prepared, rows: MetricRows, done: int) -> int:
    """Return how many rounds the run will have, if they go on taking as long as they have."""
    server = prepared.scenario.server
    if server.until is None or not done:
        return int(server.rounds)
    now = rows.last[-1]["virtual_seconds"] * SECOND
    return int(min(server.rounds, done + max(0, server.until - now) * done // now))


def by_trying(
    tasks: RunTasks,
    pipeline: Pipeline,
    before: Objective,
    client: int,
    done: int,
    known: Mapping[int, bool],
) -> Verdict:
    """Decide by running both futures to the last round from the newest model, each scored on its own test set.

    `tasks` have been made for the rounds before the one in which the device is let go, `before` is the objective before
    it; `known` are decisions of that round taken already. Later departures of a future go the way that is tried. The
    pipeline is left as it was.
    """
    snapshot, losses = pipeline.snapshot(), {}
    try:
        for name, out in (("include", False), ("exclude", True)):
            pipeline.rewind(snapshot)
            plans, tried = islice(tasks.prepared.clock(), done, None), _as_tried(client, out, known)
            losses[name] = _future(tasks.fork(), pipeline, before.fork(), plans, tried)
    finally:  # also after an interrupt the pipeline is as it was
        pipeline.rewind(snapshot)
    said = {f"loss_{name}": loss if isfinite(loss) else None for name, loss in losses.items()}
    return Verdict(losses["exclude"] <= losses["include"] and isfinite(losses["exclude"]), said)


def _as_tried(client: int, out: bool, known: Mapping[int, bool]) -> Decide:
    """Return the decisions of a future in which `client`, and all who leave after it, are let go or not."""
    return lambda objective, other, done: Verdict(known.get(other, out) if other != client else out)


def _future(tasks: RunTasks, pipeline: Pipeline, objective: Objective, plans: Iterator[Plan], decide: Decide) -> float:
    """Play the rest of the run and return its last loss; infinite if it diverges."""
    last = float("inf")
    for plan, final in with_last(plans):
        objective_state = objective.at(plan, decide)
        pipeline.submit(tasks.next(plan, objective_state, last=final))
        while pipeline.in_flight and (final or pipeline.in_flight >= pipeline.max_in_flight):
            outcomes = pipeline.finish()
            if outcomes.bad or not outcomes.sound:
                return float("inf")
            last = (outcomes.evaluated or {}).get("loss", last)
    return last
