"""Records a run: its totals, its digests, its rows of metrics and its run folder change together, round by round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.energy.tariff import tariff_of
from fedactors.errors import RunFolderError
from fedactors.fleet.messages import Outcomes, RoundTask
from fedactors.plan import Ending, MaybeEnding, Plan
from fedactors.privacy.guarantee import spending_of
from fedactors.run_files.client_metrics import append
from fedactors.run_files.files import METRICS
from fedactors.simulation.checks.remarks import remarks
from fedactors.simulation.divergence import diverged
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.record.client_measures import client_columns
from fedactors.simulation.record.digests import Digests, model_digest
from fedactors.simulation.record.eras import Eras
from fedactors.simulation.record.learning_curve import summary as curve
from fedactors.simulation.record.metric_rows import MetricRows
from fedactors.simulation.record.milestones import milestones
from fedactors.simulation.record.run_folder import RunFolder, finite
from fedactors.simulation.record.run_totals import RunTotals
from fedactors.simulation.resume.checkpoint import Checkpoint

Figures = Mapping[str, Any]


class RunRecorder:
    """Records the rounds of one run in its folder, and keeps its totals."""

    def __init__(self, folder: RunFolder, prepared: Prepared, eras: Eras) -> None:
        self.folder = folder
        self.rows = MetricRows(folder.path / METRICS)
        self.whole = True  # no round has been entered in part
        self._trained = False  # whether the last round had local steps that counted
        self.final: Figures | None = None  # null where a measure is no number
        self._tariff = eras.each(tariff_of)
        self._totals = RunTotals(prepared.ahead, self._tariff(0), len(prepared.population))
        self._prepared = prepared
        self._privacy = spending_of(prepared.scenario.server)
        self._threshold_from = eras.since(lambda scenario: scenario.server.divergence_threshold)
        self._digests = Digests()

    @property
    def plans(self) -> int:
        """Rounds written down."""
        return self._totals.plans

    @property
    def digests(self) -> dict[str, str]:
        """Digests of the plans and metrics so far."""
        return self._digests.values()

    def enter(self, plan: Plan, task: RoundTask, outcomes: Outcomes, said: Figures, wall: Figures) -> None:
        """Write down a round: its plan and weights, and a row with what was learned, what is `said` of it, and when."""
        self.whole = False
        totals = self._totals.add(plan, self._tariff(plan.version))
        row = finite({**totals, **_learned(outcomes, task), **self._spent(task), **said})
        self.final = finite(outcomes.evaluated) if outcomes.evaluated else self.final
        self._digests.plan(plan)
        self._digests.metrics(row)
        row |= wall
        self._tabulate(plan, task)
        if outcomes.client_measures is not None:
            append(self.folder.path, plan.version + 1, client_columns(outcomes.client_measures))
        self.folder.metrics(row)
        self.rows.add(row)
        self.whole = True

    def recall(self, plan: Plan, task: RoundTask, row: dict[str, Any]) -> None:
        """Take in a round that was recorded before: its row of metrics is in the folder already."""
        self._totals.add(plan, self._tariff(plan.version))
        self._spent(task)
        self._digests.plan(plan)
        self._digests.metrics(row)
        self.rows.add(row)
        self._tabulate(plan, task)

    def _tabulate(self, plan: Plan, task: RoundTask) -> None:
        self._trained = _steps(task) > 0
        self.folder.plan(plan)
        clients, bases = (_column(task, name).astype(np.int64) for name in ("clients", "base_versions"))
        self.folder.weights(plan.version, clients, bases, _column(task, "weights"))

    def _spent(self, task: RoundTask) -> dict[str, float]:
        """Take in what a round costs devices of their privacy, if that is counted, and return its column."""
        if self._privacy is None:
            return {}
        clients = _column(task, "clients").astype(np.int64)
        self._privacy.add(clients, _column(task, "weights").astype(np.float64))
        return {"epsilon": self._privacy.epsilon}

    def diverged(self) -> MaybeEnding:
        """Return why the run has to end after its last round, whose loss went too far; nothing if it goes on."""
        if self.plans <= self._threshold_from:  # rounds of before it was given
            return ""
        threshold = self._prepared.scenario.server.divergence_threshold
        return diverged(self.rows.last, threshold, trained=self._trained)

    def check_recorded(self, start: Checkpoint) -> None:
        """Raise RunFolderError if the rounds recalled are not those before the checkpoint."""
        self.final = start.final
        if start.plans and self.digests["plans"] != start.digests["plans"]:
            raise RunFolderError(
                f"{self.folder.path}: the clock gives other plans than when the checkpoint was written"
                " (accepted: the same recordings, scenario and version of fedactors)"
            )

    def conclude_clients(self, prepared: Prepared) -> None:
        """Write the clients once more, with what is known at the end: what each has consumed, and when it moved."""
        if self._totals.of_devices or prepared.population.behaving:
            self.folder.clients(prepared, self._totals.of_devices)

    def summary(self, said: Figures, ended: Ending, wall: Figures, state: Figures) -> dict[str, Any]:
        """Return the summary of the run, which `said` opens, from the server's last `state`."""
        totals = self._totals.summary()
        return {
            **said,
            **totals,
            "loss_function": str(self._prepared.model.loss),
            "tests_by_seed": self._prepared.info.tests_by_seed,
            "remarks": remarks(self._prepared, totals["virtual_seconds"]),
            **({} if self._privacy is None else {"epsilon": self._privacy.epsilon, "delta": self._privacy.delta}),
            **wall,
            "ended": ended.kind,
            "ended_because": str(ended),
            "final": self.final,
            "curve": curve(self.rows),
            **({"ahead": ahead} if (ahead := self._totals.ahead) else {}),
            "to_accuracy": milestones(self.rows, ahead=ahead),
            "digests": {**self.digests, "model": model_digest(state)},
        }


def _column(task: RoundTask, name: str) -> NDArray[Any]:
    """Return a column of all trips of a task."""
    return np.array(list(chain.from_iterable(getattr(chunk, name) for chunk in task.chunks)))


def _steps(task: RoundTask) -> int:
    """Return the local steps of a task."""
    return sum(chunk.cost for chunk in task.chunks)


def _rate(task: RoundTask) -> float:
    """Return the mean of the clients' rates over the trips that count; the round's own where there are none."""
    trips: Counter[float] = Counter()
    for chunk in task.chunks:
        trips[chunk.lr] += len(chunk.clients)
    if len(trips) < 2:
        return next(iter(trips), task.facts.lr)
    return fsum(lr * number for lr, number in trips.items()) / trips.total()


def _learned(outcomes: Outcomes, task: RoundTask) -> dict[str, Any]:
    """Return the columns of a metrics row that come from training."""
    steps = _steps(task)
    row: dict[str, Any] = {"lr": _rate(task), "train_loss": outcomes.loss / steps if steps else None}
    return row | (outcomes.evaluated or {}) | (outcomes.dissimilarity or {})
