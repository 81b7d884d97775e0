"""The server's rate where a scenario names none: algorithms differ in it, and a comparison of them compares rates."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.default_weights import listed, weights_of_one
from fedactors.simulation.prepare import cohort_of

_FEDAVG = 1.0  # that of federated averaging by default


class DefaultRate(NamedTuple):
    """The server's rate that an algorithm has by default in a scenario; `rooted` is the square root of the cohort."""

    algorithm: str
    rate: float
    rooted: bool


def default_rate(scenario: Scenario) -> DefaultRate | None:
    """Return the server's rate of a scenario; None if it names one, or if its algorithm has no `global_lr`.

    Where a round asks all devices, it is that of all of them, as if each had data.
    """
    server, algorithm = scenario.server, scenario.server.algorithm
    if server.server_schedule is not None or algorithm.server_rate_key != "global_lr":
        return None
    rate = getattr(algorithm, "global_lr", None)
    if rate != type(algorithm).model_fields["global_lr"].default:
        return None
    if rate is None:
        return DefaultRate(algorithm.name, sqrt(cohort_of(scenario, scenario.devices)), rooted=True)
    return DefaultRate(algorithm.name, rate, rooted=False) if isinstance(rate, float) else None


def rate_of_one(scenario: Scenario) -> list[str]:
    """Return a sentence about a scenario whose server has another rate than federated averaging has by default.

    It says as well if updates have other weights by default.
    """
    found = default_rate(scenario)
    told = rates_of_all([found, DefaultRate("fedavg", _FEDAVG, rooted=False)]) if found is not None else []
    return [f"{said}{weights_of_one(scenario)}" for said in told]


def rates_of_all(rates: Sequence[DefaultRate | None]) -> list[str]:
    """Return a sentence about variants whose rates of the server differ although none of them names one."""
    known = sorted(dict.fromkeys(filter(None, rates)), key=lambda one: not one.rooted)
    changed = dict.fromkeys(one.algorithm for one in known if one.rooted)
    if not changed or len({one.rate for one in known}) < 2:
        return []
    written = [f"{{name: {name}, global_lr: {_FEDAVG:g}}}" for name in changed]
    return [f"{_steps(known)}: to compare the rules at one rate, write {listed(written)}"]


def _steps(rates: Sequence[DefaultRate]) -> str:
    """Return which algorithms step with which rate; those with the same rate are named together."""
    found: dict[str, list[str]] = {}
    for one in rates:
        words = f"with global_lr = sqrt(cohort) = {one.rate:.3g}" if one.rooted else f"with {one.rate:.3g}"
        found.setdefault(words, []).append(one.algorithm)
    (words, names), *rest = found.items()
    verb = "step" if len(names) > 1 else "steps"
    return ", ".join([f"{listed(names)} {verb} {words}", *(f"{listed(names)} {words}" for words, names in rest)])
