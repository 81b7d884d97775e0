"""The server's rate where a scenario names none: algorithms differ in it, and a comparison of them compares rates."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from fedactors.clock.timings.base import Asynchronous
from fedactors.plain_text import listed
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.default_weights import weights_of_one
from fedactors.simulation.prepare import cohort_of

_FEDAVG = 1.0  # that of federated averaging by default


class DefaultRate(NamedTuple):
    """The server's rate that an algorithm has by default in a scenario; `rooted` is the square root of the cohort.

    Where that cohort is `of_all` devices with work, `rate` is as if all devices had some.
    """

    algorithm: str
    rate: float
    rooted: bool
    of_all: bool = False


def default_rate(scenario: Scenario) -> DefaultRate | None:
    """Return the server's rate of a scenario; None if it names one, or if its algorithm has no `global_lr`."""
    server, algorithm = scenario.server, scenario.server.algorithm
    if server.server_schedule is not None or algorithm.server_rate_key != "global_lr":
        return None
    rate = getattr(algorithm, "global_lr", None)
    if rate != type(algorithm).model_fields["global_lr"].default:
        return None
    if rate is None:
        of_all = server.cohort == "all" and not isinstance(server.timing, Asynchronous)
        return DefaultRate(algorithm.name, sqrt(cohort_of(scenario, scenario.devices)), rooted=True, of_all=of_all)
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
        number = "" if one.of_all else f" = {one.rate:.3g}"
        words = f"with global_lr = sqrt(cohort){number}" if one.rooted else f"with {one.rate:.3g}"
        names = found.setdefault(words, [])
        if one.algorithm not in names:  # cohorts of all may be of other numbers of devices
            names.append(one.algorithm)
    (words, names), *rest = found.items()
    verb = "step" if len(names) > 1 else "steps"
    return ", ".join([f"{listed(names)} {verb} {words}", *(f"{listed(names)} {words}" for words, names in rest)])
