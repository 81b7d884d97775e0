"""The clock alone: who would take part, when, and how far they would get. No training, no torch, no ray."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from fedactors.clock.clock import Clock
from fedactors.errors import ScenarioError
from fedactors.plan import Ending, MaybeEnding, Plan
from fedactors.report.notebook import RunPlots
from fedactors.scenario.model import ScenarioLike, as_scenario
from fedactors.simulation.checks.meanings import meanings
from fedactors.simulation.checks.remarks import remarks
from fedactors.simulation.feedback import Feedback, heeding, losses_of, nothing
from fedactors.simulation.prepare import prepare
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.record.availability_sample import write_windows
from fedactors.simulation.record.digests import Digests
from fedactors.simulation.record.run_folder import RunFolder
from fedactors.simulation.record.run_totals import RunTotals

TIME_IS_UP = Ending("the processor time allowed was over", "stopped")


@dataclass(frozen=True)
class Replay(RunPlots):
    """What a replay leaves: its summary, and its folder if one was asked for; then also frames and pictures."""

    folder: Path | None
    summary: dict[str, Any]


def replay(
    scenario: ScenarioLike,
    out: str | Path | None = None,
    *,
    rounds: int | None = None,
    feedback: str | Path | None = None,
) -> Replay:
    """Run the clock of `scenario`, of its first `rounds` rounds if given; write plans to the folder `out` if given.

    What is not a `Scenario` is loaded as by `Scenario.load`.
    A scenario that selects clients by what was learned needs the `feedback` that the folder of a run of it holds.
    Raises UsageError for what the user can mend.
    """
    scenario = as_scenario(scenario)
    prepared = prepare(scenario)
    selection = scenario.server.selection
    if selection.steers and feedback is None:
        raise ScenarioError(
            f'{scenario.source}: server.selection: "{selection.name}" looks at losses, and a replay learns nothing'
            " (accepted: the folder of a run that has: --feedback RUN)"
        )
    losses = nothing if feedback is None else losses_of(Path(feedback))
    if out is None:
        return Replay(None, play(prepared, None, rounds, losses))
    with RunFolder(Path(out), scenario, replays=True) as folder:
        clock = prepared.clock()
        summary = play(prepared, folder, rounds, losses, clock=clock)
        folder.complete()
        write_windows(folder.path, prepared, clock)
        folder.summary(summary)
    return Replay(folder.path, summary)


def play(
    prepared: Prepared,
    folder: RunFolder | None,
    rounds: int | None,
    losses: Feedback = nothing,
    seconds: float | None = None,
    clock: Clock | None = None,
) -> dict[str, Any]:
    """Run the clock and return the summary; `rounds` and processor `seconds` cut it short, `folder` takes the plans.

    `losses` is the feedback of a clock that selects clients by losses; the `clock` is a new one unless it is given.
    """
    began, worked = time.perf_counter(), time.process_time()
    totals = RunTotals(prepared.ahead, prepared.tariff, len(prepared.population))
    digests = Digests()
    clock = clock or prepared.clock()
    fractions = np.zeros(11, np.int64)
    stopped: MaybeEnding = ""
    for plan in heeding(clock, losses):
        row = totals.add(plan)
        digests.plan(plan)
        heard = plan.heard()
        fractions += np.bincount(heard.steps * 10 // heard.wanted, minlength=len(fractions))
        _write(folder, plan, row)
        if rounds is not None and totals.plans >= rounds:
            stopped = Ending(f"asked for {rounds} rounds", "stopped")
            break
        if seconds is not None and time.process_time() - worked > seconds:
            stopped = TIME_IS_UP
            break
    said = totals.summary()
    ended = cast(Ending, clock.ended_because or stopped)  # there are no plans left, or no more are wanted
    return {
        "name": prepared.scenario.name,
        "seed": prepared.scenario.seed,
        "devices": len(prepared.population),
        "sampled_devices": prepared.sampled,
        "wire": prepared.wire,
        "notes": meanings(prepared.scenario),
        **said,
        "remarks": remarks(prepared, said["virtual_seconds"]),
        "steps_done_of_wanted": {f"{10 * tenth}%": count for tenth, count in enumerate(fractions.tolist())},
        "wall_seconds": round(time.perf_counter() - began, 3),
        "ended": ended.kind,
        "ended_because": str(ended),
        "digests": {"plans": digests.values()["plans"]},
    }


def _write(folder: RunFolder | None, plan: Plan, row: dict[str, Any]) -> None:
    """Write a plan and its row of metrics to the folder, if there is one."""
    if folder is not None:
        folder.plan(plan)
        folder.metrics(row)
