"""Variants and their runs, and what is estimated of them: means over seeds, and differences seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedactors.study.run_figures import Figures, StudyRow, figures, measure_of
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
