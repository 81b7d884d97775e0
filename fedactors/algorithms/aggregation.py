"""Rules that combine updates in place of their mean, for rounds in which some updates may be anything.

Each update counts the same, whatever the participation policy: any update may be malicious, and so may the number of
samples that its client reports. n updates v_i, f of them malicious:

    median            the median of each coordinate; of an even number the mean of the middle two
    trimmed_mean      of each coordinate the mean without the floor(share n) least and as many greatest values
                      (both: Yin et al., Byzantine-Robust Distributed Learning, 2018, Definitions 1 and 2)
    krum              the v_i with the least sum of squared distances to its n - f - 2 nearest others
    multi_krum        the mean of the `keep` updates with the least such sums (both: Blanchard et al., Machine Learning
                      with Adversaries, 2017; they ask for n >= 2 f + 3)
    geometric_median  argmin_z sum_i |z - v_i|, by Weiszfeld's iteration, smoothed (Pillutla et al., Robust Aggregation
                      for Federated Learning, 2022, Algorithm 2)

The last three compare updates by distances, and take the changes of trained parameters alone for that: buffers, such as
BatchNorm's statistics, are combined by what was found (see `fedactors.learning.combining`).

[choice] A round may hear fewer updates than it wanted. The trimmed mean then leaves out one value at either end where
the share of n is less than one, if there are three or more: else it would be the plain mean. Krum counts max(1, n - f -
2) nearest ones, and Multi-Krum keeps max(1, n - f), or `keep` if that is less. The median of two updates is their mean,
and of one update any rule returns it: against f malicious ones, no rule can do anything with 2 f updates or fewer.
Weiszfeld's iteration starts from the coordinates' median.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, PositiveInt

from fedactors.learning.combining import Aggregation

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import Round

_LEAST_TRIMMED = 3  # values of which one can be left out at either end
_BLOCK = 1 << 22  # values that are sorted, or multiplied in double precision, at a time


class MeanAggregation(Aggregation):
    """The mean by the weights of the participation policy; updates are summed where clients are trained."""

    single: ClassVar[bool] = False

    name: Literal["mean"] = "mean"


class MedianAggregation(Aggregation):
    """The median of each coordinate."""

    name: Literal["median"] = "median"

    def combine(self, rows: Tensor) -> Tensor:
        """Return the mean of the middle one or two values of each coordinate."""
        return _middle_mean(rows, (len(rows) - 1) // 2)


class TrimmedMeanAggregation(Aggregation):
    """The mean of each coordinate without its extreme values."""

    name: Literal["trimmed_mean"] = "trimmed_mean"
    share: float = Field(default=0.1, ge=0.0, lt=0.5)
    """What share of the values is left out at either end."""

    def combine(self, rows: Tensor) -> Tensor:
        """Return the mean of the values between the extreme ones."""
        return _middle_mean(rows, self._cut(len(rows)))

    def problem(self, updates: int) -> str:
        """Say if the share is less than one value."""
        if self._part(updates):
            return ""
        return f"share {self.share:g} of {updates} updates is less than one, so nothing would be trimmed"

    def _cut(self, updates: int) -> int:
        """Return how many values are left out at either end: one at least of three or more, if any are to be."""
        return max(self._part(updates), int(updates >= _LEAST_TRIMMED and self.share > 0))

    def _part(self, updates: int) -> int:
        """Return the share of so many values; it is the decimal number that was written."""
        return floor(Fraction(str(self.share)) * updates)


class _Comparing(Aggregation):
    """Base of the rules that compare whole updates, by the first values of each; None compares all of them."""

    def combine(self, rows: Tensor, compared: int | None = None) -> Tensor:
        """Return one update, `(parameters,)`, by distances of the `compared` first values of the rows."""
        raise TypeError(f"{type(self).__name__} does not say how it combines")

    def combine_in_round(self, rows: Tensor, facts: Round, compared: int) -> Tensor:
        """Return the same."""
        return self.combine(rows, compared)


class _Krum(_Comparing):
    """What both kinds of Krum share."""

    malicious: int = Field(ge=1, le=1_000_000)
    """How many updates may be anything (f)."""

    def scores(self, rows: Tensor) -> Tensor:
        """Return each update's sum of squared distances to its nearest others, `(clients,)`, in double precision."""
        count = len(rows)
        distances = _squared_distances(rows)
        nearest = distances.sort(1).values[:, 1 : 1 + max(1, count - self.malicious - 2)]  # the first is its own
        return nearest.sum(1)

    def problem(self, updates: int) -> str:
        """Say if there are too few updates for so many malicious ones."""
        least = 2 * self.malicious + 3
        return (
            "" if updates >= least else f"{self.malicious} malicious of {updates} updates: at least {least} are needed"
        )


class KrumAggregation(_Krum):
    """The update that is closest to most others."""

    name: Literal["krum"] = "krum"

    def combine(self, rows: Tensor, compared: int | None = None) -> Tensor:
        """Return the update with the least score, the first one of equal ones."""
        return rows[int(self.scores(rows[:, :compared]).argmin())]


class MultiKrumAggregation(_Krum):
    """The mean of the updates that are closest to most others."""

    name: Literal["multi_krum"] = "multi_krum"
    keep: PositiveInt | None = None
    """How many updates are averaged; by default all but as many as may be malicious."""

    def combine(self, rows: Tensor, compared: int | None = None) -> Tensor:
        """Return the mean of the updates with the least scores, added in the order of clients."""
        good = max(1, len(rows) - self.malicious)
        wanted = good if self.keep is None else min(self.keep, good)
        best = self.scores(rows[:, :compared]).sort(stable=True).indices[:wanted].sort().values
        mean: Tensor = rows[best].mean(0)
        return mean

    def problem(self, updates: int) -> str:
        """Say if there are too few updates, or more would be kept than can be good."""
        if self.keep is not None and self.keep > updates - self.malicious:
            good = updates - self.malicious
            return f"keep {self.keep} of {updates} updates with {self.malicious} malicious: at most {good}"
        return super().problem(updates)


class GeometricMedianAggregation(_Comparing):
    """The point with the least sum of distances to all updates."""

    name: Literal["geometric_median"] = "geometric_median"
    iterations: int = Field(default=100, ge=1, le=100_000)
    """The most steps of Weiszfeld's iteration."""
    tolerance: float = Field(default=1e-6, ge=0.0)
    """The iteration ends when a step is at most this share of the median distance."""
    smoothing: float = Field(default=1e-6, gt=0.0)
    """The least distance that divides."""

    def combine(self, rows: Tensor, compared: int | None = None) -> Tensor:
        """Return z after z <- sum_i v_i / d_i over sum_i 1 / d_i, d_i = max(smoothing, |z - v_i|)."""
        exact = rows.double()
        z = _middle_mean(exact, (len(rows) - 1) // 2)
        for _ in range(self.iterations):
            distances = (exact - z)[:, :compared].norm(dim=1)
            weights = 1 / distances.clamp(min=self.smoothing)
            further = (weights / weights.sum()) @ exact
            step = (further - z)[:compared].norm()
            z = further
            if step <= self.tolerance * distances.median():
                break
        return z.to(rows.dtype)


def _middle_mean(rows: Tensor, cut: int) -> Tensor:
    """Return the mean of each coordinate without its `cut` least and `cut` greatest values."""
    import torch

    columns = max(1, _BLOCK // len(rows))
    parts = [part.sort(0).values[cut : len(rows) - cut].mean(0) for part in torch.split(rows, columns, 1)]
    return torch.cat(parts)


def _squared_distances(rows: Tensor) -> Tensor:
    """Return |v_i - v_j|^2 as `(clients, clients)`: each one a sum of squares, so that close ones stay exact."""
    import torch

    found = torch.zeros(len(rows), len(rows), dtype=torch.float64, device=rows.device)
    for place, row in enumerate(rows):
        for part, own in zip(
            torch.split(rows, max(1, _BLOCK // len(rows)), 1),
            torch.split(row, max(1, _BLOCK // len(rows))),
            strict=True,
        ):
            found[place] += (part.double() - own.double()).square().sum(1)
    return found
