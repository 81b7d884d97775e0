"""Computes the totals of a run again from its folder alone, and compares every number that another one implies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from fedactors.clock.energy.tariff import tariff_of
from fedactors.errors import ConservationError, RunFolderError
from fedactors.plan import Order, Outcome, Plan
from fedactors.run_files.client_metrics import refuse_lost
from fedactors.run_files.files import CHECKPOINT
from fedactors.run_files.records import check_run_folder
from fedactors.run_files.tables import WEIGHT_COLUMNS, rows_of
from fedactors.run_files.tensors import tensors_of
from fedactors.simulation.inspect.audit_records import Recorded
from fedactors.simulation.inspect.trip_sizes import TripSizes
from fedactors.simulation.objective_state import Objective, recorded
from fedactors.simulation.record.digests import Digests, model_digest
from fedactors.simulation.record.run_totals import RunTotals
from fedactors.simulation.resume import checkpoint

_MOST = 10  # complaints that are listed for each check


def audit(run: str | Path) -> dict[str, Any]:
    """Return {"folder", "sound", "checks": [{"name", "looked_at", "wrong": [...]}]} of a run that has ended.

    Raises RunFolderError if the folder lacks a file or one cannot be read.
    """
    check_run_folder(Path(run))
    records = Recorded(Path(run))
    checks = [
        {"name": name, "looked_at": looked_at(records), "wrong": _listed(check(records))}
        for name, looked_at, check in _CHECKS
        if records.trained or check not in (_weights, _final)
    ]
    return {"folder": str(records.path), "sound": not any(check["wrong"] for check in checks), "checks": checks}


def _times(records: Recorded) -> Iterator[str]:
    """Look whether versions follow one another, and instants, of a round and of every trip."""
    closed = 0
    for number, plan in enumerate(records.plans()):
        where = f"round {plan.version + 1}"
        if plan.version != number:
            yield f"{where}: found where round {number + 1} belongs"
        if not plan.opened <= plan.closed <= plan.ready or plan.closed < closed:
            yield f"{where}: opened {plan.opened}, closed {plan.closed}, ready {plan.ready}, the last closed {closed}"
        closed = plan.closed
        for order in plan.orders:
            stages = order[5:9]
            if list(stages) != sorted(stages) or (order.heard and order.finished > plan.closed):
                yield f"{where}, client {order.client}: stages at {stages} in a round closed at {plan.closed}"


def _conservation(records: Recorded) -> Iterator[str]:
    """Check that each order has one outcome, which agrees with its steps; compare their sums with all totals."""
    tariff = records.eras.each(tariff_of)
    totals = RunTotals(records.wire["ahead"], tariff(0), records.scenario.devices)
    columns = rows_of(records.path / "plans.parquet", ("asked", "heard"))
    for plan, row, counts in zip(records.plans(), chain(records.rows, repeat({})), columns, strict=False):
        where = f"round {plan.version + 1}"
        if counts != (len(plan.orders), len(list(plan.heard()))):
            yield f"{where}: plans.parquet says {counts[0]} asked and {counts[1]} heard"
        yield from (f"{where}{text}" for text in _orders(plan))
        try:
            expected = totals.add(plan, tariff(plan.version))
        except ConservationError as error:
            yield str(error)
            continue
        yield from (f"{where}: {text}" for text in _different(expected, row, "metrics.jsonl"))
    if totals.plans != len(records.rows):
        yield f"{totals.plans} plans, {len(records.rows)} lines in metrics.jsonl"
    yield from _different(totals.summary(), records.summary, "summary.json")


def _orders(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with the orders of a plan: their sequence, outcomes, steps and bases."""
    trips = [(order.client, order.started) for order in plan.orders]
    heard = [(order.client, order.base) for order in plan.heard()]  # who is not heard may be asked again from a version
    if trips != sorted(trips) or len(set(heard)) < len(heard):
        yield ": clients out of order, or one of them heard twice"
    for order in plan.orders:
        if not _fits(order) or not 0 <= order.base <= plan.version:
            yield f", client {order.client}: {order.outcome}, {order.steps} of {order.wanted} steps"


def _fits(order: Order) -> bool:
    if order.outcome is Outcome.COMPLETE:
        return order.steps == order.wanted
    if order.outcome is Outcome.PARTIAL:
        return 0 < order.steps < order.wanted
    return 0 <= order.steps <= order.wanted


def _bytes(records: Recorded) -> Iterator[str]:
    """Compare what each trip moved with the algorithm's payload: all of it if it was heard, else at most that."""
    sizes = TripSizes(records.wire)
    for plan in records.plans():
        for order in plan.orders:
            if wrong := sizes.wrong(order):
                yield f"round {plan.version + 1}, client {order.client}: {wrong}"


def _weights(records: Recorded) -> Iterator[str]:
    """Compare the weight of every update with that which the participation policy gives it."""
    from fedactors.simulation.tasks import weights_of

    assigned = records.eras.each(records.during)
    objective = Objective(assigned(0)) if records.scenario.server.membership else None
    for (plan, mine), row in zip(_with_weights(records), records.rows, strict=False):
        trips = ((order.client, order.base) for order in plan.heard())
        now = assigned(plan.version)
        objective_state = None
        if objective:
            objective.follow(now.scenario.server)
            objective_state = objective.at(plan, recorded(row))
        with np.errstate(divide="ignore", invalid="ignore"):  # of a damaged table: an update of no step
            expected = dict(zip(trips, weights_of(plan, now, objective_state), strict=True))
        for trip in sorted({*mine, *expected}):
            if mine.get(trip, 0.0) != expected.get(trip, 0.0):
                weights = f"{mine.get(trip, 0.0)!r} in place of {expected.get(trip, 0.0)!r}"
                yield f"round {plan.version + 1}, client {trip[0]}: weight {weights}"


def _with_weights(records: Recorded) -> Iterator[tuple[Plan, dict[tuple[int, int], float]]]:
    """Yield each plan with its weights in the table, by client and base."""
    tables = groupby(rows_of(records.path / "weights.parquet", WEIGHT_COLUMNS), key=itemgetter(0))
    group = next(tables, None)
    for plan in records.plans():
        mine: dict[tuple[int, int], float] = {}
        if group is not None and group[0] == plan.version:
            mine = {(client, base): weight for _, client, base, weight in group[1]}
            group = next(tables, None)
        yield plan, mine


def _digests(records: Recorded) -> Iterator[str]:
    """Compare digests of plans, metrics and model, and those that checkpoints hold."""
    digests, saved = Digests(), {}
    for path in checkpoint.checkpoints(records.path):
        try:
            one = checkpoint.read(path)
        except RunFolderError as error:
            yield str(error)
        else:
            saved[one.plans] = one.digests
    for count, (plan, row) in enumerate(zip(records.plans(), records.rows, strict=False), start=1):
        digests.plan(plan)
        digests.metrics(row)
        if count in saved and saved[count] != digests.values():
            yield f"checkpoint of round {count}: other digests"
    expected = records.summary.get("digests", {})
    found = digests.values() | ({"model": _model(records.path)} if records.trained else {})
    yield from (
        f"{part}: {found[part]} in place of {expected[part]}" for part in expected if found[part] != expected[part]
    )


def _model(run: Path) -> str:
    return model_digest(tensors_of(run / CHECKPOINT / "model.safetensors"))


def _final(records: Recorded) -> Iterator[str]:
    """Compare the final figures with the last evaluation, and rounds that evaluated clients with their lines."""
    try:
        refuse_lost(records.path, records.rows)
    except RunFolderError as error:
        yield str(error)
    rows = [row for row in records.rows if "loss" in row]
    final = records.summary.get("final")
    if records.scenario.server.selection.steers:
        return  # the last round was not known in advance: it may have been evaluated afterwards
    if bool(rows) != bool(final):
        yield f"{len(rows)} evaluations, final figures {final}"
    elif final:
        yield from _different(final, rows[-1], "metrics.jsonl")


def _different(expected: Mapping[str, Any], found: Mapping[str, Any], where: str) -> Iterator[str]:
    """Yield where `found` differs from `expected`, whose keys it must have."""
    for key, value in expected.items():
        if found.get(key) != value:
            yield f"{key}: {found.get(key)} in {where}, {value} by the orders"


def _listed(wrong: Iterable[str]) -> list[str]:
    """Return the first complaints; numbers that fit nowhere are one."""
    found: list[str] = []
    try:
        found.extend(islice(wrong, _MOST))  # keeps those before an error
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        found.append(f"cannot be worked out: {type(error).__name__}: {error}")
    return found


def _shown_count(found: object) -> str:
    """Return a number of a summary, which others may have written, with commas; anything else shortened."""
    return f"{found:,}" if isinstance(found, int) else str(found)[:40]


def _shown_names(found: object) -> str:
    """Return the names in a table of a summary; anything else shortened."""
    return ", ".join(map(str, found)) if isinstance(found, dict) else str(found)[:40]


_Looked = Callable[[Recorded], str]
_Check = Callable[[Recorded], Iterable[str]]
_CHECKS: tuple[tuple[str, _Looked, _Check], ...] = (
    ("times", lambda records: f"{len(records.rows):,} rounds", _times),
    ("conservation", lambda records: f"{_shown_count(records.summary.get('asked', 0))} orders", _conservation),
    ("bytes", lambda records: "what each trip moved", _bytes),
    ("weights", lambda records: f"{len(records.held):,} clients", _weights),
    ("final", lambda records: "the last evaluation", _final),
    ("digests", lambda records: _shown_names(records.summary.get("digests", {})), _digests),
)
