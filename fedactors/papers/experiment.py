"""What an experiment is: a scenario, axes, and claims about the table of results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.papers.figures import LEFT_OUT, Figure
from fedactors.papers.verdicts import Claim, Floor
from fedactors.study.study_cells import SEED, StudyAxis, StudyCell, crossed
from fedactors.study.study_cells import Label as Label

EVALUATED = ("_accuracy", "loss", "auc", "recall10", "spreadout")  # endings of the names of measures of an evaluation
_FURTHER = ("loss_sd", "max_gt2", "max_bt2")  # what else is known of some runs
Axes = Mapping[str, Mapping[Label, Sequence[str]]]  # axis -> label -> overrides "key.path=value"


class Evaluation(NamedTuple):
    """What was found on the test set after a round."""

    round: int
    accuracy: float
    loss: float


class Measures(NamedTuple):
    """What is kept of a run; None where it was not measured or never reached."""

    accuracy: float  # rolling, at the end
    t90: int | None  # rounds
    t50: int | None  # rounds to 50 % accuracy
    sd20: float | None
    xi2: float | None  # means over the rounds measured
    g2: float | None
    wall: float | None  # seconds
    curve: tuple[Evaluation, ...] = ()  # of every round that was evaluated
    further: Mapping[str, float] = {}  # by name: means over the last 20 rounds, peaks, and what an experiment adds
    folder: Path | None = None  # of the run

    def figure(self, name: str) -> Any:
        """Return a measure by its name, None if this run has none. Raises KeyError if no run can have it."""
        if name in self._fields or isinstance(getattr(type(self), name, None), property):
            return getattr(self, name)
        if not name.endswith(EVALUATED) and name not in _FURTHER:
            raise KeyError(f'no measure "{name}"')
        return self.further.get(name)

    @property
    def rounds(self) -> int:
        """The last round that was evaluated."""
        return self.curve[-1].round if self.curve else 0

    @property
    def last5(self) -> float:
        """Mean accuracy of the last five rounds evaluated."""
        last = self.curve[-5:]
        return sum(point.accuracy for point in last) / max(1, len(last))

    @property
    def at3(self) -> float | None:
        """Accuracy after round 3."""
        return self.after(3)

    @property
    def at5(self) -> float | None:
        """Accuracy after round 5."""
        return self.after(5)

    @property
    def at10(self) -> float | None:
        """Accuracy after round 10."""
        return self.after(10)

    def after(self, round: int) -> float | None:
        """Accuracy after a round, None if it was not evaluated then."""
        return next((point.accuracy for point in self.curve if point.round == round), None)


DIVERGED = Measures(accuracy=0.0, t90=None, t50=None, sd20=None, xi2=None, g2=None, wall=None)
"""What is kept of a run that ended in NaN or Inf: its model gets nothing right, and nothing else counts of it."""


@dataclass(frozen=True)
class ResultTable:
    """The results of a grid."""

    rows: Sequence[tuple[Mapping[str, Label], Measures]]
    floors: Sequence[Floor] = ()  # the first that is meant for a run counts
    left_out: Collection[tuple[str, Label]] = ()  # axes and labels that were not run

    def runs(self, **labels: Label) -> list[Measures]:
        """Return every run at `labels`, none where a label was left out. Raises KeyError if there is none elsewhere."""
        found = [measures for at, measures in self.rows if all(at.get(axis) == label for axis, label in labels.items())]
        if not found and not self._without(labels):
            raise KeyError(f"no run at {labels}")
        return found

    def _without(self, labels: Mapping[str, Label]) -> bool:
        return any(item in self.left_out for item in labels.items())

    def mean(self, measure: str, **labels: Label) -> Figure:
        """Return a measure at `labels`, of each run (repeat). Raises KeyError if there is no such run or measure."""
        return self.figure(lambda run: run.figure(measure), **labels)

    def further(self, name: str, **labels: Label) -> Figure:
        """Return a further figure (`Experiment.from_run`) at `labels`, of each run. Raises KeyError as `runs`."""
        return self.figure(lambda run: run.further.get(name), **labels)

    def figure(self, value: Callable[[Measures], float | None], **labels: Label) -> Figure:
        """Return what `value` finds of each run at `labels`, of none that was left out. Raises KeyError as `runs`."""
        return Figure(tuple(value(run) for run in self.runs(**labels)), self.faults(**labels))

    def faults(self, **labels: Label) -> tuple[str, ...]:
        """Return why runs at `labels` did not learn, one sentence each; `LEFT_OUT` alone if they were left out."""
        if self._without(labels):
            return (LEFT_OUT,)
        found = []
        for at, run in self.rows:
            if all(at.get(axis) == label for axis, label in labels.items()) and (why := self._fault(at, run)):
                found.append(f"{', '.join(f'{axis} {label}' for axis, label in at.items())}: {why}")
        return tuple(found)

    def _fault(self, at: Mapping[str, Label], run: Measures) -> str:
        floor = next((one for one in self.floors if one.meets(at)), None)
        return floor.fault(run.rounds, run.figure(floor.measure)) if floor else ""

    def labels(self, axis: str) -> list[Label]:
        """Return the labels of an axis, in order of appearance. Raises KeyError if no run has one, unless left out."""
        found = list(dict.fromkeys(at[axis] for at, _ in self.rows if axis in at))
        if not found and all(axis != name for name, _ in self.left_out):
            raise KeyError(f'no run has an axis "{axis}"')
        return found


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper, or its reduced twin."""

    title: str
    scenario: str  # file, relative to the folder of scenarios
    grids: Sequence[Axes]  # their union is run; axis "seed" is added to each
    seeds: Sequence[int] = (1,)
    claims: Callable[[ResultTable], list[Claim]] = lambda table: []
    reported: str = ""  # the paper's own numbers, where it prints some
    columns: Sequence[str] = field(default=("accuracy", "t90", "sd20"))
    beside: Callable[[ResultTable], list[str]] = lambda table: []  # the paper's table with ours beside it, as lines
    tuned: Sequence[str] = ()  # axes of which only the best label is kept, found with the first seed
    best_by: str = "last5"  # the measure that chooses among the labels
    floors: Sequence[Floor] = ()  # what models must have reached to be compared
    from_run: Callable[[Path], Mapping[str, float]] = lambda folder: {}  # further figures of a run, from its folder
    left_out: Collection[tuple[str, Label]] = ()  # axes and labels that the paper has and the grids do not

    def table(self, rows: Sequence[tuple[Mapping[str, Label], Measures]]) -> ResultTable:
        """Return the table of results at these labels."""
        return ResultTable(rows, self.floors, self.left_out)

    def of_run(self, found: Measures) -> Measures:
        """Return the measures of a run with the further figures that its folder has. Raises what reading it raises."""
        return found._replace(further={**found.further, **self.from_run(found.folder)}) if found.folder else found

    def judged(self, table: ResultTable) -> list[Claim]:
        """Return the claims with what the table says of them, but for those that look at what was left out."""
        return [claim for claim in self.claims(table) if LEFT_OUT not in claim.ours]

    def cells(self, seeds: Sequence[int] | None = None) -> Iterator[StudyCell]:
        """Yield every run, none twice; of all seeds unless some are named."""
        grids = ([StudyAxis(name, values) for name, values in axes.items()] for axes in self.grids)
        yield from dict.fromkeys(cell for axes in grids for cell in crossed(axes, seeds or self.seeds))

    def best(self, rows: Sequence[tuple[Mapping[str, Label], Measures]]) -> list[Mapping[str, Label]]:
        """Return the places (labels without the seed) that win over all others that differ in tuned axes alone.

        A figure that is no finite number wins over none; of such alone the first one is kept.
        """
        won: dict[tuple[tuple[str, Label], ...], tuple[float, Mapping[str, Label]]] = {}
        for at, found in rows:
            place = {axis: label for axis, label in at.items() if axis != SEED}
            rivals = tuple((axis, label) for axis, label in place.items() if axis not in self.tuned)
            value = _finite(found.figure(self.best_by))
            if rivals not in won or value > won[rivals][0]:
                won[rivals] = value, place
        return [place for _, place in won.values()]


def _finite(value: float | None) -> float:
    """Return a value; less than all others if it is no finite number."""
    return value if value is not None and isfinite(value) else -inf
