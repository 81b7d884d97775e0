"""Where the schemes end: the limits in closed form, and runs against them."""

from pathlib import Path

import numpy as np
import pytest

from fedactors.papers import grid
from fedactors.papers.flexible.flexible_limits import distances, factors, minimiser
from fedactors.scenario.model import Scenario
from fedactors.study.runs import StudyRun

PATH = Path(__file__).parents[2] / "scenarios/papers/flexible/rr5-reduced.yaml"
SMALL = ("task.dataset={name: synthetic, isotropic: true, samples: 300}",)


def test_factors_by_hand():
    """Two devices of two steps: complete with chances 1 and 1/2."""
    laws = [(0.0, 0.0, 1.0), (0.25, 0.25, 0.5)]
    np.testing.assert_allclose(factors("A", laws), [1 / 2 * 1 + 1 / 2 * 1 / 2, 1 / 2 * 1 / 2])
    np.testing.assert_allclose(factors("B", laws), [2, 1.25])
    np.testing.assert_allclose(factors("C", laws), [1, 0.75])


def test_at_the_limit_the_weighted_gradients_of_the_devices_cancel():
    scenario, weights = Scenario.load(PATH, SMALL), np.array([1.0, 0.3, 2.0, 0.5])
    data, w = scenario.task.load(scenario.seed, 4), minimiser(scenario, weights)
    matrix, bias = w[:600].reshape(10, 60), w[600:]
    total = np.zeros((10, 60))
    for k, weight in enumerate(weights):
        mine = slice(*data.clients[k : k + 2])
        error = data.x[mine] @ matrix.T + bias - np.eye(10)[data.y[mine]]
        total += weight * error.T @ data.x[mine]
    assert np.abs(total).max() < 1e-6 * len(data.y)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", "BC")
def test_a_short_run_without_inactivity_comes_near_its_limit(tmp_path, scheme):
    sets = (*SMALL, f"server.participation={scheme}", "population.devices.sampled=[T0, T30, T50, T90]")
    found = distances(grid.measured(StudyRun(PATH, (*sets, "server.rounds=60"), tmp_path)).folder)
    start = np.linalg.norm(minimiser(Scenario.load(PATH, SMALL), np.ones(4)))
    assert found["from_limit"] < 0.1 * start
    assert (found["limit_from_best"] == pytest.approx(0.0, abs=1e-9)) == (scheme == "C")
