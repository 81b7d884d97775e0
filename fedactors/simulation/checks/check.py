"""Forecasts a scenario before it runs: devices, rounds, traffic and memory."""

from __future__ import annotations

import sys
import time
from typing import Any

from fedactors.data.on_demand import row_bytes
from fedactors.errors import ScenarioError
from fedactors.own_code.user_errors import user_errors
from fedactors.plan import SECOND
from fedactors.scenario.model import Scenario, ScenarioLike, as_scenario
from fedactors.simulation.checks.budget import SECONDS, Budget, slow_laws
from fedactors.simulation.checks.meanings import meanings
from fedactors.simulation.checks.memory_forecast import host_bytes, refuse_too_much, single_updates
from fedactors.simulation.checks.prepare_task import runs_own_code
from fedactors.simulation.checks.remarks import remarks
from fedactors.simulation.fleet_choice import lacking_gpus, refuse_engine
from fedactors.simulation.prepare import check_files, prepare
from fedactors.simulation.prepared import Prepared, least_times
from fedactors.simulation.replay import TIME_IS_UP, play
from fedactors.simulation.trials.own_classes import try_own_classes, try_own_clock

_ROUNDS = 20  # replayed to learn what rounds look like
_MOST_DATA = 2**30  # bytes that are loaded to try code of the user on
_LONG = 20.0  # seconds before the first round that are worth a note


@user_errors(ScenarioError)
def check(
    scenario: ScenarioLike, fleet: str | None = None, actors: int | None = None, seconds: float = SECONDS
) -> dict[str, Any]:
    """Validate `scenario` as far as possible without running it, and return what it will do.

    What is not a `Scenario` is loaded as by `Scenario.load`. With a `fleet`, "ray" or "local", the engine is timed for
    a few seconds to forecast wall time and memory. What would take longer than about `seconds` of processor time in
    all is estimated, and "costly" says so. What is returned is what `fedactors check --json` prints.
    Raises UsageError for whatever would stop the run at its start.
    """
    scenario = as_scenario(scenario)
    budget = Budget(seconds)
    check_files(scenario)
    for text in slow_laws(scenario, budget.for_laws):
        budget.note(text)
    prepared = prepare(scenario, budget.for_laws)
    refuse_engine(prepared)
    refuse_too_much(prepared, joined=bool(scenario.cluster.address))
    try_own_classes(prepared)
    _try_own_code(prepared, budget)
    budget.note_preparation()
    sample = _sample(prepared, budget)
    try_own_clock(prepared, sample)
    rounds = sample["plans"] or 1
    foreseen = None if fleet is None else _forecast(prepared, fleet, actors, budget, rounds)
    return {
        "name": scenario.name,
        "devices": {group.name: group.count for group in scenario.population},
        "samples": {
            "total": int(prepared.sizes.sum()),
            "smallest": int(prepared.sizes.min()),
            "largest": int(prepared.sizes.max()),
        },
        "inputs": _inputs(prepared),
        "model": {
            "name": prepared.model.name,
            "parameters": prepared.model.parameters,
            "bytes": prepared.model_bytes,
        },
        "rounds": {
            "wanted": scenario.server.rounds,
            "replayed": sample["plans"],
            "asked": sample["asked"] / rounds,
            "heard": sample["heard"] / rounds,
            "partial": sample["outcomes"]["partial"] / rounds,
            "seconds": sample["virtual_seconds"] / rounds,
        },
        "notes": [
            *_gpus(scenario),
            *meanings(scenario),
            *_transforms(prepared),
            *remarks(prepared, _virtual_seconds(scenario, sample)),
        ],
        "too_slow_devices": _too_slow(prepared),
        "memory_bytes": _memory(prepared),
        "ended_because": sample["ended_because"],
        "forecast": foreseen,
        "costly": budget.costly,
    }


def _transforms(prepared: Prepared) -> list[str]:
    """Return a sentence about how long transforms take before the first round, if that is long."""
    scenario, info = prepared.scenario, prepared.info
    seconds = scenario.task.transform_seconds(scenario.seed, scenario.devices)
    if seconds < _LONG:
        return []
    return [
        f"task.transform: {info.variants:,} variants of {info.train_size:,} images are made before the first round of"
        f" each run, which takes about {seconds:,.0f} s (fewer variants take less; a module of yours can also augment"
        " in its forward, if self.training)"
    ]


def _try_own_code(prepared: Prepared, budget: Budget) -> None:
    """Raise DataError, naming the scenario's file, if a module, a loss or a metric of the user cannot be used.

    They are tried as a run tries them: on the first samples, for which torch is imported and the data are loaded.
    """
    metrics = [metric.spec() for metric in prepared.scenario.task.metrics]
    if not runs_own_code(prepared.model, metrics):
        return
    size = _memory(prepared)["data"]
    if size > _MOST_DATA:
        budget.note(
            f"loading {size / 1e9:,.1f} GB of data: your module, loss and metrics are tried on them when a run starts,"
            " not by check"
        )
        return
    from fedactors.simulation.runner import load
    from fedactors.simulation.trials.own_code_trial import try_own_code

    data = load(prepared)
    try_own_code(prepared, data.task, data.samples, data.evaluation_set)


def _inputs(prepared: Prepared) -> list[dict[str, Any]]:
    """Return what a sample consists of: name, empty by position, and shape of each input."""
    info = prepared.info
    parts = [(part.name, part.shape) for part in info.inputs] or [("", info.input_shape)]
    return [{"name": name, "shape": list(shape)} for name, shape in parts]


def _gpus(scenario: Scenario) -> list[str]:
    """Return a sentence if GPUs are asked for that this machine does not have."""
    keys = ", ".join(lacking_gpus(scenario.cluster))
    return [f"{keys}: torch finds no GPU on this machine, so the nodes of a cluster must have them"] if keys else []


def _sample(prepared: Prepared, budget: Budget) -> dict[str, Any]:
    """Return the summary of the first rounds, as many as the budget lets the clock play; at least one."""
    wanted = min(_ROUNDS, prepared.scenario.server.rounds)
    before = budget.spent
    sample = play(prepared, None, wanted, seconds=budget.for_rounds)
    if sample["ended_because"] == TIME_IS_UP:
        played = sample["plans"]
        each = (budget.spent - before) / played
        costs = f"the clock takes {each:.2g} s of processor time for a round"
        budget.note(f"{costs}; what is said of rounds rests on the first {played}")
    return sample


def _virtual_seconds(scenario: Scenario, sample: dict[str, Any]) -> float:
    """Return how long a run takes in virtual time if later rounds take as long as those of the `sample`."""
    server = scenario.server
    seconds: float = sample["virtual_seconds"]
    if sample["plans"] in (0, server.rounds):
        return seconds
    whole: float = seconds * server.rounds / sample["plans"]
    return whole if server.until is None else min(whole, server.until / SECOND)


def _forecast(prepared: Prepared, fleet: str, actors: int | None, budget: Budget, rounds: int) -> dict[str, Any]:
    began, there = time.perf_counter(), "torch" in sys.modules
    from fedactors.simulation.checks.forecast import IMPORTING, forecast  # imports torch

    importing = IMPORTING if there else time.perf_counter() - began
    return forecast(prepared, fleet, actors, importing, budget, rounds)


def _too_slow(prepared: Prepared) -> int:
    """Return how many devices could not make the deadline even undisturbed."""
    deadline = prepared.scenario.server.deadline
    return 0 if deadline is None else int((least_times(prepared) > deadline).sum())


def _memory(prepared: Prepared) -> dict[str, int]:
    """Estimate the memory of the run in bytes: the shared data, and one client host."""
    info = prepared.info
    data = prepared.train_bytes + info.evaluated_size * row_bytes(info.input_shape)
    updates = single_updates(prepared)
    return {
        **({"updates": updates} if updates else {}),
        "data": data,
        "host": host_bytes(prepared),
    }
