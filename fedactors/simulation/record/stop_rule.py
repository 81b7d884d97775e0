"""Ends a run when a measure is good enough or does not improve any more, and keeps the best model until then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fedactors.metric_names import VALIDATION, chooser, is_validated
from fedactors.plan import Ending, MaybeEnding
from fedactors.run_files.best_model import BestModel
from fedactors.scenario.stop_options import Level, StopOptions, rises
from fedactors.simulation.record.eras import Eras

Row = Mapping[str, Any]
State = Mapping[str, Any]


class StopRule:
    """The rule of one run. Without `server.stop` it never ends a run, and keeps nothing.

    Args:
        eras: the scenarios of the run; rounds before the last one's rule are not looked at.
        best: where the best model is kept.

    """

    def __init__(self, eras: Eras, best: BestModel) -> None:
        scenario = eras.now
        self._options: StopOptions | None = scenario.server.stop
        self._from = eras.since(lambda scenario: scenario.server.stop)
        self._best_model = best
        self._own = scenario.task.own_metrics
        self.reason: MaybeEnding = ""
        self.best: dict[str, Any] | None = None  # metric, round, value; test_value, if it is of validation
        self._since = 0  # evaluations without a better value
        if self._options is not None:
            self._metric = self._options.watched(scenario.task.has_accuracy)

    def recall(self, row: Row) -> None:
        """Take in a round that was recorded before."""
        if row["round"] > self._from:
            self._see(row)

    def settled(self, rounds: int, state: Callable[[], State]) -> None:
        """Take note that all `rounds` recorded before are in, and the server's `state` is that after them.

        A best model of a later round is dropped. That of the last one is written if it is not there: a run can be
        killed between a round and its model.
        """
        if self._options is None:
            return
        best = self.best["round"] if self.best else None
        self._best_model.keep_only(best)
        if best == rounds and not self._best_model.is_of(best):
            self._best_model.write(state(), best)

    @property
    def kept(self) -> dict[str, Any] | None:
        """The best round, if its model is there."""
        return self.best if self.best and self._best_model.is_of(self.best["round"]) else None

    def after(self, row: Row, state: Callable[[], State]) -> MaybeEnding:
        """Take in a round; return why the run ends with it, or nothing. `state` gives the server's state after it."""
        if self._options is None:
            return ""
        if self._see(row):
            self._best_model.write(state(), row["round"])
        return self.reason

    def _see(self, row: Row) -> bool:
        """Take in a row; return whether it is the best so far."""
        options = self._options
        if options is None:
            return False
        better = False
        column = self._column(self._metric, row)
        if column in row:
            better = self._is_better(column, row[column])
            if better:
                self.best = _noted(column, row)
            self._since = 0 if better else self._since + 1
        self.reason = self.reason or self._reached(options, row) or self._exhausted(options, column)
        return better

    def _column(self, name: str, row: Row) -> str:
        """Return the column of metrics that the rule looks at for a measure."""
        return chooser(name, self._own, validated=is_validated(row))

    def _is_better(self, column: str, value: float | None) -> bool:
        """Return whether a value, None where it is no number, is better than the best one by `min_delta`."""
        if value is None:
            return False
        if self.best is None:
            return True
        assert self._options is not None
        gain = value - self.best["value"] if rises(column, self._own) else self.best["value"] - value
        return bool(gain > self._options.min_delta)

    def _reached(self, options: StopOptions, row: Row) -> MaybeEnding:
        for measure, level in options.reach.items():
            name = self._column(measure, row)
            value = row.get(name)
            if value is None:
                continue
            bound = self._bound(name, level)
            if bound.above is not None and value >= bound.above:
                return Ending(f"{name} {value:.6g} is at least {bound.above:g}, as server.stop asks", "goal")
            if bound.below is not None and value <= bound.below:
                return Ending(f"{name} {value:.6g} is at most {bound.below:g}, as server.stop asks", "goal")
        return ""

    def _bound(self, name: str, level: Level) -> Level:
        """Return a level with the side from which it is reached."""
        if level.at is None:
            return level
        return Level(above=level.at) if rises(name, self._own) else Level(below=level.at)

    def _exhausted(self, options: StopOptions, column: str) -> MaybeEnding:
        if options.patience is None or self._since < options.patience:
            return ""
        best = "" if self.best is None else f" than {self.best['value']:.6g} of round {self.best['round']}"
        return Ending(f"no better {column}{best} in {self._since} evaluations, as server.stop asks", "goal")


def _noted(column: str, row: Row) -> dict[str, Any]:
    """Return what is kept of the best round; with the test samples' value, if it is best by those for validation."""
    best = {"metric": column, "round": row["round"], "value": row[column]}
    if not is_validated(row) or not column.startswith(VALIDATION):
        return best
    return best | {"test_value": row.get(column.removeprefix(VALIDATION))}
