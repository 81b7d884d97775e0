"""REFL's weights of stale updates that differ from the fresh ones: Abdelmoniem et al., REFL, EuroSys 2023, section 4.2.

    u_F = mean of the n_F fresh updates ;  for each stale update u_s, of age tau_s:
        Lambda_s = | u_F - (u_s + n_F u_F) / (n_F + 1) |^2 / | u_F |^2
        f_s = (1 - beta) / (tau_s + 1) + beta (1 - exp(-Lambda_s / Lambda_max))
    fresh ones have f = 1 ;  weights are p_i f_i, scaled to the sum of all p_i

p_i is the weight by the participation policy. An update that says something new counts more although it is late.

Deviations: the authors' code has exp(...) / 10 in place of the paper's exp(...); here it is the paper's. In a round
without fresh updates, or whose mean is 0, or where no stale update is off the mean, nothing can be compared: beta
counts for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field
from typing_extensions import override

from fedactors.learning.combining import Aggregation

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import Round


class DeviationWeights(Aggregation):
    """The sum of all updates, by weights that depend on the updates."""

    name: Literal["refl-deviation"] = "refl-deviation"
    beta: float = Field(gt=0.0, le=1.0)

    @override
    def combine_in_round(self, rows: Tensor, facts: Round, compared: int) -> Tensor:
        """Return the weighted sum of the rows; `facts.updates` has their weights for 1 / (tau + 1), and ages.

        Updates differ by their `compared` first values; what comes behind is summed with the same weights.
        """
        import torch

        weights, ages = (torch.tensor(column, dtype=torch.float64) for column in zip(*facts.updates, strict=True))
        factors = self.factors(rows[:, :compared].double(), ages)
        of_updates = weights * (ages + 1) * factors
        counted = of_updates.sum()
        scaled = of_updates * (weights.sum() / counted) if counted > 0 else of_updates
        total = rows.new_zeros(rows.shape[1])
        for weight, row in zip(scaled.tolist(), rows, strict=True):
            total = total + weight * row
        return total

    def factors(self, rows: Tensor, ages: Tensor) -> Tensor:
        """Return f of each row, `(updates,)`; `ages` are tau."""
        import torch

        fresh = ages == 0
        young = 1 / (ages + 1)
        mean = rows[fresh].mean(0) if fresh.any() else rows.new_zeros(rows.shape[1])
        size = mean.square().sum()
        if size > 0 and not fresh.all():
            moved = (rows - mean) / (int(fresh.sum()) + 1)  # by so much would the mean move
            deviation = moved.square().sum(1) / size
            most = deviation[~fresh].max()
            if most > 0:
                young = (1 - self.beta) / (ages + 1) + self.beta * (1 - torch.exp(-deviation / most))
        return torch.where(fresh, 1.0, young)
