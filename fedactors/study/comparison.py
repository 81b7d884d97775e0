"""A comparison in pairs: variants of one scenario, each with the same seeds, and what differs between them.

For a seed, all variants face the same devices, windows and speeds, since no random stream depends on the algorithm. So
differences are taken seed by seed, where most of the chance cancels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedactors.errors import ScenarioError, suggestion
from fedactors.report.variant_names import Label, variant_of
from fedactors.scenario.model import Scenario
from fedactors.scenario.sweep_options import refuse_seeds
from fedactors.simulation.checks.default_weights import default_weights, weights_of_all
from fedactors.simulation.checks.server_rates import default_rate, rates_of_all
from fedactors.study.compared import Compared
from fedactors.study.ranking import (
    AT_OWN_MODELS,
    asked_measure,
    ranking_column,
    refuse_best_round,
    unused_model,
    with_own_models,
)
from fedactors.study.run_figures import StudyRow, common_target, validated
from fedactors.study.running import StudyWork, Tell, run_for
from fedactors.study.runs import StudyMachines
from fedactors.study.study_cells import SEED, StudyAxis, StudyCell, axis, crossed, merged, refuse_lost

if TYPE_CHECKING:
    from fedactors.simulation.fleet_choice import FleetKind


class Comparison(Compared):
    """Variants compared, as a frame, a picture, and what a notebook shows."""

    def frame(self) -> Any:
        """Return a pandas DataFrame of the runs: a row each, with its figures. Needs pandas."""
        from fedactors.study.exports.frames import frame

        return frame(self.rows, self.target, self.window)

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it: its answer, and the table of its variants."""
        from fedactors.study.comparison_tables import as_html

        return as_html(self)

    def plot(self, axes: Any = None, against: str = "round") -> Any:
        """Draw mean accuracies with their intervals against `round`, `virtual` time, `bytes` or `joules`.

        Returns the matplotlib axes; needs matplotlib. Each seed's last value stands until its next one, and a variant
        ends where its shortest run does. Raises RunFolderError if the runs do not count that.
        """
        from fedactors.study.comparison_tables import drawn
        from fedactors.study.study_plots import accuracies

        runs = {name: [one.records for one in rows if not one.failure] for name, rows in self.variants.items()}
        return accuracies(runs, self.confidence, self.name, axes, against, *drawn(self))


def compare(
    scenario: str | Path,
    vary: Mapping[str, Sequence[Any]] | Sequence[StudyAxis],
    seeds: int | Sequence[int] = 5,
    *,
    out: str | Path | None = None,
    overrides: Iterable[str] = (),
    baseline: str | None = None,
    measure: str | None = None,
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
    last `window` rounds, by default over the last tenth of the rounds; with `report.measures.BEST_ROUND`, those of each
    run's best round by its samples for validation. With `clock_only` nothing is trained: runs are replays, with
    participation, time and traffic alone.

    Raises UsageError for what the user can mend, and StudyInterruptedError, a KeyboardInterrupt, with the comparison of
    the seeds that all variants have, if the user stops it.
    """
    path = Path(scenario)
    changes = tuple(overrides)
    machines = StudyMachines(jobs, address, fleet, actors)
    axes = [axis(key, list(values)) for key, values in vary.items()] if isinstance(vary, Mapping) else list(vary)
    base = Scenario.load(path, changes)
    refuse_lost(changes, axes, [name for name, _ in base.groups])
    if not axes:
        raise ScenarioError(f"{scenario}: nothing is varied (accepted: the values of at least one key)")
    cells = list(crossed(axes, seeds_of(base, seeds)))
    variants = list(dict.fromkeys(variant_of(_labels(cell)) for cell in cells))
    first = _baseline(baseline, variants)
    where = Path(out or f"runs/studies/{base.name}")
    asked, beside = asked_measure(base, axes, measure, clock_only=clock_only)
    settings = {} if clock_only else settings_of(path, changes, cells)
    own, said = with_own_models(settings), notes_of(settings)
    refuse_best_round(base, axes, window, asked or (AT_OWN_MODELS if own else None))

    def study(cells: Sequence[StudyCell], rows: Sequence[StudyRow]) -> Comparison:
        named: dict[str, list[StudyRow]] = {variant: [] for variant in variants}
        for cell, one in zip(cells, rows, strict=True):
            named[variant_of(_labels(cell))].append(one)
        by = validated(rows)
        wanted = common_target(named[first], window, by_validation=by) if target is None else target
        return Comparison(
            name=base.name,
            variants=named,
            baseline=first,
            target=wanted,
            confidence=confidence,
            window=window,
            settings_notes=said,
            measure=asked and ranking_column(asked, rows),
            beside=beside,
            own_models=own,
        )

    found: Comparison = run_for(StudyWork(path, cells, where, changes, machines, clock_only), tell, study)
    return found


def _baseline(named: str | None, variants: Sequence[str]) -> str:
    """Return the baseline: the first variant unless one is named. Raises ScenarioError if no variant has its name."""
    first = variants[0] if named is None else named
    if first not in variants:
        raise ScenarioError(f'--baseline: no variant "{first}"{suggestion(first, variants)}')
    return first


def settings_of(path: Path, changes: tuple[str, ...], cells: Sequence[StudyCell]) -> dict[str, Scenario]:
    """Return the scenario of each variant, with any of its seeds."""
    groups = [name for name, _ in Scenario.load(path, changes).groups]
    once = {variant_of(_labels(cell)): cell for cell in cells}
    return {name: Scenario.load(path, merged(changes, cell, groups)) for name, cell in once.items()}


def notes_of(settings: Mapping[str, Scenario]) -> list[str]:
    """Return sentences on what variants differ in although none names it, and on models that are not evaluated."""
    scenarios = list(settings.values())
    rates = rates_of_all(list(map(default_rate, scenarios)))
    return [*rates, *weights_of_all(list(map(default_weights, scenarios))), *unused_model(settings)]


def seeds_of(base: Scenario, seeds: int | Sequence[int]) -> Sequence[int]:
    """Return `seeds`, or so many of them, counted from the seed of the scenario.

    Raises ScenarioError if there are none, too many, or one twice.
    """
    try:
        refuse_seeds(seeds)
    except ValueError as error:
        raise ScenarioError(f"seeds: {error}") from None
    return range(base.seed, base.seed + seeds) if isinstance(seeds, int) else seeds


def _labels(cell: StudyCell) -> dict[str, Label]:
    """Return where a cell stands, without its seed."""
    return {name: label for name, label in cell.labels if name != SEED}
