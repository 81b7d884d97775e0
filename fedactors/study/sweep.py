"""A sweep: every point of a grid of settings, with every entry of a list of changes and every seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from fedactors.errors import ScenarioError, suggestion
from fedactors.metric_names import VALIDATION, chooser
from fedactors.report.measures import Floats
from fedactors.report.variant_names import Label, variant_of
from fedactors.scenario.model import Scenario
from fedactors.scenario.sweep_options import Sweep
from fedactors.study.comparison import seeds_of
from fedactors.study.heat_map import HeatMap
from fedactors.study.ranking import ranking_column, refuse_best_round, refuse_unknown, refuse_unmeasured
from fedactors.study.run_figures import (
    MEASURES,
    Figures,
    Measure,
    StudyRow,
    figures,
    measure_of,
    rises_of,
    titled,
    validated,
)
from fedactors.study.running import StudyWork, Tell, run_for
from fedactors.study.runs import StudyMachines
from fedactors.study.statistics import Interval
from fedactors.study.study_cells import StudyAxis, StudyCell, axis, change, crossed, refuse_lost

if TYPE_CHECKING:
    from fedactors.simulation.fleet_choice import FleetKind

VARIANT = "variant"
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Swept:
    """A finished sweep: its axes, the grid's first, and its runs."""

    name: str
    axes: Sequence[StudyAxis]
    rows: Sequence[StudyRow]
    measure: str
    target: float | None
    window: int | None
    beside: Sequence[str] = ()  # further measures of the table
    best_per: str | None = None  # an axis, for each label of which the best place is told

    @property
    def on_test(self) -> str | None:
        """The measure of the test samples, where places are ranked by samples for validation."""
        name = self.measure
        return name.removeprefix(VALIDATION) if name.startswith(VALIDATION) and validated(self.rows) else None

    @property
    def columns(self) -> list[str]:
        """The measures of the table; places are ranked by the first one."""
        test = [] if self.on_test is None else [self.on_test]
        return [*dict.fromkeys([self.measure, *test, *self.beside])]

    def titled(self, name: str) -> Measure:
        """Return what is known of a measure of the table."""
        return titled(name, validated=validated(self.rows))

    @cached_property
    def figures(self) -> Sequence[Figures]:
        """The figures of each run."""
        by = validated(self.rows)
        return [figures(row, self.target, self.window, by_validation=by) for row in self.rows]

    def values(self, measure: str, at: Mapping[str, Label]) -> list[float]:
        """Return a measure of the runs at a place, of all seeds that have it."""
        there = [
            one.get(measure)
            for row, one in zip(self.rows, self.figures, strict=True)
            if all(row.labels.get(name) == label for name, label in at.items())
        ]
        return [value for value in there if value is not None]

    def places(self) -> list[tuple[dict[str, Label], Interval | None]]:
        """Return each place of the sweep with the mean of the measure there."""
        return [(at, self.mean(self.measure, at)) for at in _places(self.axes)]

    def mean(self, name: str, at: Mapping[str, Label]) -> Interval | None:
        """Return the mean of a measure at a place, with its interval."""
        return measure_of(name).interval(self.values(name, at), CONFIDENCE)

    def by_seed(self, measure: str) -> dict[str, dict[int, float | None]]:
        """Return a measure of each place, in words, by seed."""
        found: dict[str, dict[int, float | None]] = {}
        for row, one in zip(self.rows, self.figures, strict=True):
            found.setdefault(variant_of(row.labels), {})[row.seed] = one.get(measure)
        return found

    def best(self, within: Mapping[str, Label]) -> tuple[dict[str, Label], Interval] | None:
        """Return the place with the best mean of the measure; None if there is no figure, or no better and worse.

        Only places `within` these labels of axes count. Places where more seeds have a figure come first.
        """
        rises = self.rises()
        known = [(at, value) for at, value in self.places() if value is not None and within.items() <= at.items()]
        if rises is None or not known:
            return None
        return max(known, key=lambda one: (one[1].n, one[1].mean if rises else -one[1].mean))

    def each(self) -> list[dict[str, Label]]:
        """Return each label of the axis `best_per` as a place within which one is the best; empty without that axis."""
        return [{one.name: label} for one in self.axes if one.name == self.best_per for label in one.values]

    def rises(self) -> bool | None:
        """Return whether higher values of the measure are better; None if neither is."""
        return rises_of(self.measure, self.rows[0].records) if self.rows else None

    def maps(self) -> list[HeatMap]:
        """Return heat maps of the measure over the first two axes, one for each place on the others."""
        across = self.axes[0]
        up = self.axes[1] if len(self.axes) > 1 else StudyAxis("", {"": ()})
        return [HeatMap(at, across, up, self._map(at, across, up)) for at in _places(self.axes[2:])]

    def _map(self, at: Mapping[str, Label], across: StudyAxis, up: StudyAxis) -> Floats:
        def mean(x: Label, y: Label) -> float:
            place = {**at, across.name: x, **({up.name: y} if up.name else {})}
            found = self.values(self.measure, place)
            return fmean(found) if found else float("nan")

        return np.array([[mean(x, y) for x in across.values] for y in up.values], np.float64)

    def frame(self) -> Any:
        """Return a pandas DataFrame of the runs: a row each, with its figures. Needs pandas."""
        from fedactors.study.exports.frames import frame

        return frame(self.rows, self.target, self.window)

    def plot(self, figure: Any = None) -> Any:
        """Draw the heat maps; return the matplotlib figure. Needs matplotlib."""
        from fedactors.study.study_plots import heat_maps

        return heat_maps(self.maps(), measure_of(self.measure), figure)


def _places(axes: Sequence[StudyAxis]) -> list[dict[str, Label]]:
    names = [axis.name for axis in axes]
    return [dict(zip(names, labels, strict=True)) for labels in product(*(axis.values for axis in axes))]


def axes_of(wanted: Sweep) -> list[StudyAxis]:
    """Return the axes of a sweep: the grid's, then the list."""
    found = [axis(key, values) for key, values in wanted.grid.items()]
    variants: dict[Label, Sequence[str]] = {
        v.label: tuple(change(key, value) for key, value in v.set.items()) for v in wanted.list
    }
    return [*found, *([StudyAxis(VARIANT, variants)] if variants else [])]


def sweep(
    scenario: str | Path,
    *,
    out: str | Path | None = None,
    overrides: Iterable[str] = (),
    measure: str | None = None,
    target: float | None = None,
    window: int | None = None,
    jobs: int | None = None,
    address: str | None = None,
    fleet: FleetKind = "local",
    actors: int | None = None,
    clock_only: bool = False,
    further: Sequence[StudyAxis] = (),
    best_per: str | None = None,
    tell: Tell = lambda row, pace: None,
) -> Swept:
    """Run what the `sweep:` of a scenario file asks for, as far as that is not done.

    Arguments are those of `compare`; `further` axes are crossed with those of the file, which may then have none;
    `measure` is what heat maps show and places are ranked by, with `clock_only` by default the share heard. Where there
    are samples for validation, it is of these; `test_accuracy` is of the test samples even then.
    `best_per` names an axis: the best place is then told for each of its labels, too, such as the best rate of each
    algorithm.
    Raises UsageError for what the user can mend, and StudyInterruptedError with what complete seeds say, if the user
    stops it.
    """
    path = Path(scenario)
    changes = tuple(overrides)
    base = Scenario.load(path, changes)
    if base.sweep is None and not further:
        raise ScenarioError(f"{scenario}: has no sweep (accepted: a section sweep with a grid, a list, or both)")
    shown = _shown(base, measure, target, clock_only=clock_only)
    axes = [*(axes_of(base.sweep) if base.sweep else ()), *further]
    refuse_lost(changes, axes, [name for name, _ in base.groups])
    refuse_unmeasured(base, axes, "sweep.measure", shown, clock_only=clock_only)
    refuse_best_round(base, axes, window, shown)
    _refuse_no_axis(best_per, axes)
    cells = list(crossed(axes, seeds_of(base, base.sweep.seeds if base.sweep else 1)))
    where = Path(out or f"runs/studies/{base.name}")
    machines = StudyMachines(jobs, address, fleet, actors)
    named = base.sweep.beside if base.sweep and not clock_only else ()
    own = base.task.own_metrics
    beside = [chooser(name, own, validated=False) for name in named]  # the columns that are named

    def study(cells: Sequence[StudyCell], rows: Sequence[StudyRow]) -> Swept:
        return Swept(
            name=base.name,
            axes=axes,
            rows=rows,
            measure=ranking_column(shown, rows),
            target=target,
            window=window,
            beside=beside,
            best_per=best_per,
        )

    found: Swept = run_for(StudyWork(path, cells, where, changes, machines, clock_only), tell, study)
    return found


def _refuse_no_axis(best_per: str | None, axes: Sequence[StudyAxis]) -> None:
    """Raise ScenarioError if `best_per` is not the name of an axis, or if there is no other one to choose on."""
    names = [one.name for one in axes]
    if best_per is not None and len(names) == 1:
        raise ScenarioError(f"--best-per {best_per}: {names[0]} is the only axis (accepted: with two axes or more)")
    if best_per is not None and best_per not in names:
        raise ScenarioError(f'--best-per: no axis "{best_per}"{suggestion(best_per, names)}')


def _shown(base: Scenario, measure: str | None, target: float | None, *, clock_only: bool) -> str:
    """Return the measure that is shown. Raises ScenarioError if there is none, or it needs a target."""
    default = base.sweep.measure if base.sweep else "accuracy"
    shown = measure or ("heard" if clock_only else default)
    known = (*MEASURES, *base.task.own_metrics)
    beside = base.sweep.beside if base.sweep else []
    for key, name in (("measure", shown), *(("beside", name) for name in beside)):
        refuse_unknown(base, f"sweep.{key}", name, known)
    if shown.endswith("_to") and target is None:
        accepted = "(accepted: --target, an accuracy)"
        raise ScenarioError(f"{base.source}: sweep.measure: {shown} needs a target {accepted}")
    return shown
