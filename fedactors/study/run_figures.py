"""What a study keeps of a run: its figures, worked out from the run folder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from fedactors.errors import ScenarioError
from fedactors.metric_names import VALIDATION, is_share
from fedactors.plain_text import listed
from fedactors.report.measures import at_end
from fedactors.report.terminal_text import joules, size, span
from fedactors.run_files.records import Records, read
from fedactors.scenario.yaml_text import parse
from fedactors.simulation.record.learning_curve import first_at
from fedactors.study.run_folders import failure
from fedactors.study.statistics import Interval, interval, share_interval
from fedactors.study.study_cells import SEED, Label, StudyCell

_LEAST, _MOST = 0.01, 1e6  # of values that are written with three decimals
_ROUNDING = 1e-12  # differences below are no more than errors of rounding
Figures = Mapping[str, float | None]  # by the names of MEASURES; None where there is none, or it was never reached


class Measure(NamedTuple):
    """A figure of a run: what it is called, and how it is written in tables."""

    name: str
    kind: str  # share (between 0 and 1), figure (of any size), number, seconds, bytes, joules

    def show(self, value: float) -> str:
        """Return a value as a person reads it."""
        shown = {"seconds": span, "bytes": size, "joules": joules}.get(self.kind)
        if shown is None:
            return f"{value:,.1f}" if self.kind == "number" else _decimals(value)
        return f"-{shown(-value)}" if value < 0 else shown(value)

    def interval(self, values: Sequence[float], confidence: float) -> Interval | None:
        """Return the mean of values with its interval, which stays within 0 and 1 if they are shares."""
        return (share_interval if self.kind == "share" else interval)(values, confidence)


def _decimals(value: float) -> str:
    """Return a value with three decimals, or with three digits where those would show less of it, or much more."""
    return f"{value:.3f}" if abs(value) < _ROUNDING or _LEAST <= abs(value) < _MOST else f"{value:.3g}"


MEASURES = {
    "accuracy": Measure("accuracy", "share"),
    "loss": Measure("loss", "figure"),
    "client_accuracy": Measure("accuracy at clients", "share"),
    "client_accuracy_worst": Measure("accuracy at the worst tenth of clients", "share"),
    "heard": Measure("heard of asked", "share"),
    "partial": Measure("partial of asked", "share"),
    "gini": Measure("Gini of participation", "share"),
    "staleness": Measure("mean staleness", "figure"),
    "rounds": Measure("rounds", "number"),
    "seconds": Measure("virtual time", "seconds"),
    "bytes": Measure("traffic", "bytes"),
    "joules": Measure("energy", "joules"),
    "epsilon": Measure("epsilon", "figure"),
    "wall": Measure("wall time", "seconds"),
    "rounds_to": Measure("rounds to target", "number"),
    "seconds_to": Measure("time to target", "seconds"),
    "bytes_to": Measure("bytes to target", "bytes"),
    "joules_to": Measure("energy to target", "joules"),
}

AT_CLIENTS = ("client_accuracy", "client_accuracy_worst")  # where the scenario has an `evaluation`


def measure_of(name: str) -> Measure:
    """Return what is known of a measure: one of the above, or one that a scenario names."""
    return MEASURES.get(name) or Measure(name.replace("_", " "), "share" if is_share(name) else "figure")


def titled(name: str, *, validated: bool) -> Measure:
    """Return the same, called after the test samples where there are samples for validation beside them."""
    found = measure_of(name)
    of_tests = chooses(name) and not name.startswith(VALIDATION)
    return found._replace(name=f"test {found.name}") if validated and of_tests else found


def chooses(name: str) -> bool:
    """Return whether a measure is one of the server's evaluation, of which samples for validation have one too."""
    return learned(name) and name not in AT_CLIENTS


def learned(name: str) -> bool:
    """Return whether a measure is one of the model: what is compared of it is its mean over the last rounds."""
    return name in ("accuracy", "loss", *AT_CLIENTS) or name not in MEASURES


def rises_of(name: str, records: Records) -> bool | None:
    """Return whether higher values of a measure of a run are better; None if neither is."""
    if name in AT_CLIENTS:
        return True
    if name in MEASURES and name not in ("accuracy", "loss"):
        return False if name.endswith("_to") else None
    return records.rises(name)


@dataclass(frozen=True)
class StudyRow:
    """One run of a study: where it stands, and the records it left; `failure` says why it could not be finished."""

    labels: Mapping[str, Label]
    seed: int
    folder: Path
    records: Records
    failure: str = ""

    @property
    def plans(self) -> str:
        """Digest of its plans."""
        return str(self.records.summary.get("digests", {}).get("plans", ""))

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The resolved scenario; empty if the run left none that can be read."""
        try:
            return parse(self.records.scenario, str(self.folder))[0] if self.records.scenario else {}
        except ScenarioError:
            return {}


def row(cell: StudyCell, folder: Path) -> StudyRow:
    """Return the row of a finished run. Raises RunFolderError if its folder is damaged."""
    labels = {axis: label for axis, label in cell.labels if axis != SEED}
    return StudyRow(labels, int(cell.at(SEED) or 0), folder, read(folder, tables=False), failure(folder))


def figures(
    one: StudyRow, target: float | None = None, window: int | None = None, *, by_validation: bool | None = None
) -> Figures:
    """Return the figures of a run, and what its scenario measures besides.

    Accuracies, losses and other measures of the model are means over the last `window` rounds, by default over the last
    tenth of the rounds. `target` is the accuracy that the measures ending in `_to` tell the way to: of one round, or
    the mean over a `window`; of the samples for validation if `by_validation`, by default where the run has some. A run
    that diverged has no figures.
    """
    found: dict[str, float | None] = dict.fromkeys((*MEASURES, *further(one.records)))
    if one.failure or not one.records.rounds:
        return found
    metrics = one.records.metrics
    spent = _spent(one.records)
    found |= {name: float(column[-1]) for name, column in spent.items() if np.isfinite(column[-1])}
    asked = float(metrics["asked"].sum())
    found["heard"] = float(metrics["heard"].sum()) / asked if asked else None
    found["partial"] = float(metrics["partial"].sum()) / asked if asked else None
    found["gini"] = _summed(one.records, "fairness", "gini")
    found["staleness"] = _summed(one.records, "staleness", "mean")
    reaching = _reaching(one.records, by_validation=by_validation)
    return found | _learned(one.records, spent, reaching, np.inf if target is None else target, window)


def further(records: Records) -> list[str]:
    """Return the measures of a run besides those in `MEASURES`: named by its scenario, or of samples for validation."""
    of_validation = ("accuracy", "loss", *records.measures) if records.validated else ()
    return [*records.measures, *(VALIDATION + name for name in of_validation)]


def _reaching(records: Records, *, by_validation: bool | None) -> str:
    """Return the column of accuracies that a target is one of."""
    return "accuracy" if by_validation is False else records.chooser("accuracy")


def _learned(
    records: Records, spent: Mapping[str, np.ndarray], reaching: str, target: float, window: int | None
) -> dict[str, float]:
    """Return all measures at the end, and what was spent until the column `reaching` was at `target`."""
    metrics = records.metrics
    ends = {name: at_end(records, name, window) for name in ("accuracy", "loss", *AT_CLIENTS, *further(records))}
    found = {name: value for name, value in ends.items() if value is not None}
    column = metrics[reaching]
    seen = np.flatnonzero(np.isfinite(column))
    if not len(seen):
        return found
    rounds, values = metrics["round"][seen].astype(int).tolist(), column[seen].tolist()
    reached = first_at(target, rounds, values, window or None)  # a best round is one round: nothing is averaged
    return found if reached is None else found | _spent_until(int(seen[reached]), spent)


def _spent_until(at: int, spent: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the measures ending in `_to` if the target was reached in row `at` of the metrics."""
    names = [name for name in spent if f"{name}_to" in MEASURES]
    return {f"{name}_to": float(spent[name][at]) for name in names if np.isfinite(spent[name][at])}


def _summed(records: Records, part: str, name: str) -> float | None:
    """Return a figure of a part of the summary: how unequally clients are heard, how old updates are on average."""
    found = records.summary.get(part)
    value = found.get(name) if isinstance(found, dict) else None
    return float(value) if isinstance(value, int | float) else None


def _spent(records: Records) -> dict[str, np.ndarray]:
    """Return what was spent by the end of each round, in columns."""
    metrics = records.metrics
    joules = metrics["joules"]
    return {
        "rounds": metrics["round"],
        "seconds": metrics["virtual_seconds"],
        "bytes": records.ahead("bytes_down") + np.nancumsum(metrics["bytes_down"] + metrics["bytes_up"]),
        "joules": records.ahead("joules") + np.cumsum(joules),  # stays NaN where none are counted
        "wall": metrics["wall_seconds"],
        "epsilon": metrics["epsilon"],  # NaN where it is not counted
    }


def common_target(rows: Sequence[StudyRow], window: int | None, *, by_validation: bool | None = None) -> float | None:
    """Return 90 % of the mean final accuracy of `rows`, in whole percent.

    None if none was evaluated, or if `rows` had as much on average when they were first evaluated: then the way to it
    says nothing.
    """
    columns = [_reaching(one.records, by_validation=by_validation) for one in rows]
    ends = (figures(one, None, window).get(column) for one, column in zip(rows, columns, strict=True))
    finals = [value for value in ends if value is not None]
    if not finals:
        return None
    target = int(90 * mean(finals)) / 100
    firsts = [value for one, column in zip(rows, columns, strict=True) for value in _first(one, column)]
    return target if target > mean(firsts) else None


def _first(one: StudyRow, column: str) -> list[float]:
    """Return what a run that did not fail had in a column of metrics when it was first evaluated; empty if never."""
    values = one.records.metrics[column]
    return [] if one.failure else [float(value) for value in values[np.isfinite(values)][:1]]


def validated(rows: Sequence[StudyRow]) -> bool:
    """Return whether all runs that did not fail were evaluated on samples for validation too, and there is one."""
    finished = [one.records.validated for one in rows if not one.failure]
    return bool(finished) and all(finished)


def tests_mixed(rows: Sequence[StudyRow]) -> bool:
    """Return whether test samples of one seed may be samples for validation of another.

    They may where a share of the test samples is put aside, and these may be others for another seed.
    """
    if len({one.seed for one in rows}) < 2:
        return False
    tasks = [(one, task) for one in rows if isinstance(task := one.scenario.get("task"), dict)]
    return any(task.get("validation") is not None and one.records.tests_by_seed for one, task in tasks)


def unlike_programs(rows: Sequence[StudyRow]) -> list[str]:
    """Return a sentence if runs, or parts of one, were computed by unlike programs or processors; else none."""
    known = [one for row in rows for one in _programs(row)]
    found = {name: sorted({str(one.get(name, "unknown")) for one in known}) for one in known for name in one}
    unlike = [f"{name} {listed(versions)}" for name, versions in found.items() if len(versions) > 1]
    why = "the runs were computed by unlike programs, so that bits may differ"
    return [f"{why}: {'; '.join(unlike)}"] if unlike else []


def _programs(one: StudyRow) -> list[Mapping[str, Any]]:
    """Return what computed a run: two if it was gone on with by others than it began with, none of replays."""
    said = (one.records.summary.get(key) for key in ("made_with_before", "made_with"))
    return [programs for programs in said if isinstance(programs, dict)]
