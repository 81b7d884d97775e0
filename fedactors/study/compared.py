"""Variants and their runs, and what is estimated of them: means over seeds, and differences seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fedactors.study.run_figures import Figures, StudyRow, figures, measure_of, validated
from fedactors.study.statistics import Interval, paired


@dataclass(frozen=True)
class Estimate:
    """One measure of one variant: its mean over seeds, and its difference from the baseline seed by seed."""

    variant: str
    measure: str
    value: Interval | None
    difference: Interval | None


@dataclass(frozen=True)
class Compared:
    """Variants, in order, and their runs; `target` is the accuracy that "to target" speaks of."""

    name: str
    variants: Mapping[str, Sequence[StudyRow]]  # each ascending by seed
    baseline: str
    target: float | None
    confidence: float
    window: int | None
    defaults: Sequence[
        str
    ] = ()  # sentences about the server's rates and weights that differ though no variant names one

    @property
    def rows(self) -> list[StudyRow]:
        """All runs."""
        return [one for rows in self.variants.values() for one in rows]

    @cached_property
    def validated(self) -> bool:
        """Whether there are samples for validation: then variants are ranked by these, and not by the test samples."""
        return validated(self.rows)

    @property
    def seeds(self) -> list[int]:
        """The seeds that every variant was run with."""
        return [one.seed for one in self.variants[self.baseline]]

    def figures(self, variant: str) -> Sequence[Figures]:
        """Return the figures of each run of a variant."""
        return self._figures[variant]

    def estimates(self) -> Sequence[Estimate]:
        """Return every measure of every variant that has any."""
        return self._estimates

    @cached_property
    def _figures(self) -> Mapping[str, Sequence[Figures]]:
        return {
            variant: [figures(one, self.target, self.window, by_validation=self.validated) for one in rows]
            for variant, rows in self.variants.items()
        }

    @cached_property
    def _estimates(self) -> Sequence[Estimate]:
        runs = [one for found in self._figures.values() for one in found]
        measures = dict.fromkeys(name for one in runs for name in one)
        known = [name for name in measures if any(one.get(name) is not None for one in runs)]
        return [self._estimate(variant, measure) for variant in self.variants for measure in known]

    def _estimate(self, variant: str, measure: str) -> Estimate:
        values, base = ([one.get(measure) for one in self._figures[name]] for name in (variant, self.baseline))
        mean = measure_of(measure).interval([value for value in values if value is not None], self.confidence)
        apart = None if variant == self.baseline else paired(values, base, self.confidence)
        return Estimate(variant, measure, mean, apart)

    def alike(self) -> Mapping[str, bool]:
        """Return whether the plans of each variant are those of the baseline, in all seeds that both have finished.

        Variants that have no such seed are left out.
        """
        found = {}
        for variant, rows in self.variants.items():
            pairs = [
                (mine.plans, base.plans)
                for mine, base in zip(rows, self.variants[self.baseline], strict=True)
                if not (mine.failure or base.failure) and mine.plans and base.plans
            ]
            if pairs:
                found[variant] = all(mine == base for mine, base in pairs)
        return found
