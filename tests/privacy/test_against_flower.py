"""Clipping and the budget of clips that adapt as Flower has them, where Flower is installed."""

import numpy as np
import pytest
import torch

from fedactors.privacy.spending import GaussianSpending
from fedactors.transforms.adaptive_clip import AdaptiveClip
from fedactors.transforms.gaussian import GaussianNoise
from fedactors.transforms.update_clipping import clipped
from tests.transforms.vectors import normal

flower = pytest.importorskip("flwr.supercore.differential_privacy", reason="Flower is not installed")


@pytest.mark.parametrize("norm", [0.1, 3.0, 1e3])
def test_updates_are_clipped_as_in_flower(norm):
    start, rows = normal(1, 300, seed=1), normal(4, 300)
    for row, found in zip(rows, clipped(rows, norm), strict=True):
        model = [(start[0] + row)[:200].numpy().reshape(20, 10).copy(), (start[0] + row)[200:].numpy().copy()]
        before = [start[0, :200].numpy().reshape(20, 10), start[0, 200:].numpy()]
        flower.compute_clip_model_update(model, before, norm)
        change = np.concatenate([(one - other).ravel() for one, other in zip(model, before, strict=True)])
        torch.testing.assert_close(found, torch.from_numpy(change), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("multiplier", "cohort"), [(1.0, 100), (0.5, 40)])
def test_noise_and_counts_share_the_budget_as_in_flower(multiplier, cohort):
    """With the noise that Flower works out for a budget z, a round costs 1 / z^2 here, counts included."""
    deviation, raised = flower.compute_adaptive_noise_params(multiplier, cohort, None)
    clip = AdaptiveClip(count_deviation=deviation)
    spending = GaussianSpending(GaussianNoise(multiplier=raised), 1e-5, (False,), clip)
    spending.add(np.arange(cohort), np.full(cohort, 1 / cohort))
    np.testing.assert_allclose(spending.spent[:cohort], 1 / multiplier**2)
