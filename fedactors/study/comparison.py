"""A comparison in pairs: variants of one scenario, each with the same seeds, and what differs between them.

For a seed, all variants face the same devices, windows and speeds, since no random stream depends on the algorithm. So
differences are taken seed by seed, where most of the chance cancels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedactors.errors import ScenarioError, suggestion
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.server_rates import default_rate, rates_of_all
from fedactors.study.run_figures import Figures, StudyRow, common_target, figures, measure_of
from fedactors.study.running import StudyWork, Tell, run_for
from fedactors.study.runs import StudyMachines
from fedactors.study.statistics import Interval, paired
from fedactors.study.study_cells import SEED, Label, StudyAxis, StudyCell, axis, crossed

if TYPE_CHECKING:
    from fedactors.simulation.fleet_choice import FleetKind


@dataclass(frozen=True)
class Estimate:
    """One measure of one variant: its mean over seeds, and its difference from the baseline seed by seed."""

    variant: str
    measure: str
    value: Interval | None
    difference: Interval | None


@dataclass(frozen=True)
class Comparison:
    """Variants, in order, and their runs; `target` is the accuracy that "to target" speaks of."""

    name: str
    variants: Mapping[str, Sequence[StudyRow]]  # each ascending by seed
    baseline: str
    target: float | None
    confidence: float
    window: int | None
    rates: Sequence[str] = ()  # a sentence, where the server's rates differ although no variant names one

    @property
    def rows(self) -> list[StudyRow]:
        """All runs."""
        return [one for rows in self.variants.values() for one in rows]

    @property
    def seeds(self) -> list[int]:
        """The seeds that every variant was run with."""
        return [one.seed for one in self.variants[self.baseline]]

    def figures(self, variant: str) -> list[Figures]:
        """Return the figures of each run of a variant."""
        return [figures(one, self.target, self.window) for one in self.variants[variant]]

    def estimates(self) -> list[Estimate]:
        """Return every measure of every variant that has any."""
        found = {variant: self.figures(variant) for variant in self.variants}
        return [
            self._estimate(found, variant, measure)
            for variant in self.variants
            for measure in dict.fromkeys(name for runs in found.values() for one in runs for name in one)
            if any(one.get(measure) is not None for runs in found.values() for one in runs)
        ]

    def _estimate(self, found: Mapping[str, Sequence[Figures]], variant: str, measure: str) -> Estimate:
        values, base = ([one.get(measure) for one in found[name]] for name in (variant, self.baseline))
        mean = measure_of(measure).interval([value for value in values if value is not None], self.confidence)
        apart = None if variant == self.baseline else paired(values, base, self.confidence)
        return Estimate(variant, measure, mean, apart)

    def unlike(self) -> list[str]:
        """Return the variants whose plans are not those of the baseline in every seed."""
        plans = [one.plans for one in self.variants[self.baseline]]
        return [name for name, rows in self.variants.items() if [one.plans for one in rows] != plans]

    def frame(self) -> Any:
        """Return a pandas DataFrame of the runs: a row each, with its figures. Needs pandas."""
        from fedactors.study.frames import frame

        return frame(self.rows, self.target, self.window)

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it: its answer, and the table of its variants."""
        from fedactors.study.comparison_tables import as_html

        return as_html(self)

    def plot(self, axes: Any = None) -> Any:
        """Draw mean accuracies over rounds with their intervals; return the matplotlib axes. Needs matplotlib."""
        from fedactors.study.study_plots import accuracies

        runs = {name: [one.records for one in rows if not one.failure] for name, rows in self.variants.items()}
        return accuracies(runs, self.confidence, self.name, axes)


def compare(
    scenario: str | Path,
    vary: Mapping[str, Sequence[Any]] | Sequence[StudyAxis],
    seeds: int | Sequence[int] = 5,
    *,
    out: str | Path | None = None,
    overrides: Iterable[str] = (),
    baseline: str | None = None,
    target: float | None = None,
    confidence: float = 0.95,
    window: int | None = None,
    jobs: int | None = None,
    address: str | None = None,
    fleet: FleetKind = "local",
    actors: int | None = None,
    clock_only: bool = False,
    tell: Tell = lambda row, pace: None,
) -> Comparison:
    """Run every variant of `scenario` with every seed, as far as that is not done, and compare them.

    `vary` gives the values of each key; all combinations are run. `seeds` are the seeds, or how many, counted from the
    scenario's own. Runs lie in `out`, by default runs/studies/NAME; `StudyMachines` says where they are computed, by
    `jobs`, `address`, `fleet` and `actors`. The `baseline` is the first variant unless named; `target` is by default
    90 % of the baseline's accuracy at the end. Accuracies, losses and other measures of the model are means over the
    last `window` rounds, by default over the last tenth of the rounds. With `clock_only` nothing is trained: runs are
    replays, with participation, time and traffic alone.

    Raises UsageError for what the user can mend, and StudyInterruptedError, a KeyboardInterrupt, with the comparison of
    the seeds that all variants have, if the user stops it.
    """
    path = Path(scenario)
    changes = tuple(overrides)
    machines = StudyMachines(jobs, address, fleet, actors)
    axes = [axis(key, list(values)) for key, values in vary.items()] if isinstance(vary, Mapping) else list(vary)
    base = Scenario.load(path, changes)
    cells = list(crossed(axes, seeds_of(base, seeds)))
    variants = list(dict.fromkeys(variant_of(_labels(cell)) for cell in cells))
    first = variants[0] if baseline is None else baseline
    if first not in variants:
        raise ScenarioError(f'--baseline: no variant "{first}"{suggestion(first, variants)}')
    where = Path(out or f"runs/studies/{base.name}")
    rates = rates_of(path, changes, cells, clock_only=clock_only)

    def study(cells: Sequence[StudyCell], rows: Sequence[StudyRow]) -> Comparison:
        named: dict[str, list[StudyRow]] = {variant: [] for variant in variants}
        for cell, one in zip(cells, rows, strict=True):
            named[variant_of(_labels(cell))].append(one)
        wanted = common_target(named[first], window) if target is None else target
        return Comparison(base.name, named, first, wanted, confidence, window, rates)

    found: Comparison = run_for(StudyWork(path, cells, where, changes, machines, clock_only), tell, study)
    return found


def rates_of(path: Path, changes: tuple[str, ...], cells: Sequence[StudyCell], *, clock_only: bool) -> list[str]:
    """Return a sentence about cells whose servers differ in the rate that they have by default."""
    if clock_only:
        return []
    once = {variant_of(_labels(cell)): cell for cell in cells}
    return rates_of_all([default_rate(Scenario.load(path, (*changes, *cell.overrides))) for cell in once.values()])


def seeds_of(base: Scenario, seeds: int | Sequence[int]) -> Sequence[int]:
    """Return `seeds`, or so many of them, counted from the seed of the scenario."""
    return range(base.seed, base.seed + seeds) if isinstance(seeds, int) else seeds


def variant_of(labels: Mapping[str, Label]) -> str:
    """Return what a variant is called: its value if one key is varied, else each key's last word with its value."""
    shorts = [name.rpartition(".")[2] for name in labels]
    names = [short if shorts.count(short) == 1 else name for short, name in zip(shorts, labels, strict=True)]
    if len(labels) == 1:
        return str(*labels.values())
    return ", ".join(f"{name}={value}" for name, value in zip(names, labels.values(), strict=True))


def _labels(cell: StudyCell) -> dict[str, Label]:
    """Return where a cell stands, without its seed."""
    return {name: label for name, label in cell.labels if name != SEED}
