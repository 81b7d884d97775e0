"""Statistics of BatchNorm where models are mixed: the cloud's are the mean of the edges', and FedAsync's by hand."""

import numpy as np
import pytest

import fedactors
from fedactors import Scenario
from fedactors.models.network import initial
from fedactors.simulation.prepare import prepare

NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(64, 6), nn.BatchNorm1d(6), nn.Linear(6, 10)
    def forward(self, x):
        return self.head(self.norm(self.body(x.flatten(1))).relu())
"""
LINK = {"down": "1 GB/s", "up": "1 GB/s", "latency": 0}
SLOW, QUICK = {"compute": {"per_sample": "1s"}}, {"compute": {"per_sample": "1ms"}}


@pytest.fixture
def state_after(tmp_path):
    """Return the flat model of the newest version after some aggregations of edges and cloud."""

    (tmp_path / "nets.py").write_text(NET)

    def played(aggregations, deadlines=(None, None), *, tiers=True, **timing):
        edges = [
            {"name": name, "network": LINK, "deadline": deadline}
            for name, deadline in zip(("north", "south"), deadlines, strict=True)
        ]
        data = {
            "name": "normed",
            "seed": 2,
            "task": {
                "dataset": "digits",
                "model": {"name": "torch", "factory": "nets.py:Net"},
                "partition": {"name": "classes", "classes": 2, "samples": 20},
            },
            "population": [
                {"name": "far", "count": 2, **({"edge": "north"} if tiers else {}), **SLOW},
                {"name": "near", "count": 3, **({"edge": "south"} if tiers else {}), **QUICK},
            ],
            "server": {
                "rounds": 9,
                "timing": {"name": "hierarchical", "edges": edges, **timing} if tiers else timing,
                "local": {"epochs": 1, "batch": 10},
                "schedule": {"name": "constant", "lr": 0.1},
            },
        }
        scenario = Scenario.from_data(data, "normed.yaml", folder=tmp_path)
        folder = tmp_path / f"after {aggregations} {timing}"
        run = fedactors.run(scenario, folder, fleet="local", report=False, stop_after=aggregations)
        return run.state["x"] if aggregations else initial(prepare(scenario).model, scenario.seed)

    return played


def test_the_clouds_statistics_are_the_mean_of_the_edges(state_after):
    """South closes first, then north, then the cloud: 3 and 2 clients of 20 samples, so shares of .6 and .4.

    The last twelve values are six means and six variances.
    """
    south, north, cloud = (state_after(number) for number in (1, 2, 3))
    expected = 0.6 * south + 0.4 * north
    assert np.abs(south[-12:] - north[-12:]).max() > 0.01
    np.testing.assert_allclose(cloud, expected, rtol=1e-5, atol=1e-6)


def test_an_edge_that_heard_nobody_keeps_the_statistics_that_it_had(state_after):
    """North's clients need twenty seconds, and it waits for one: it still has the first model of the cloud."""
    start, south, north, cloud = (state_after(number, ("1s", None)) for number in range(4))
    assert np.abs(south[-12:] - start[-12:]).max() > 0.01
    np.testing.assert_allclose(north, start, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(cloud, south, rtol=1e-6, atol=1e-7)


def test_an_edge_that_is_mixed_in_alone_brings_its_statistics_along(state_after):
    """Mixing .25: after the first round of south the cloud has 3/4 of the first model and 1/4 of south's."""
    start, south, cloud = (state_after(number, mixing=0.25) for number in range(3))
    np.testing.assert_allclose(cloud, 0.75 * start + 0.25 * south, rtol=1e-5, atol=1e-6)


def test_fedasync_mixes_the_statistics_of_one_client_by_its_share(state_after):
    """Alpha 1 takes the first client's model whole, and alpha .25 a quarter of it."""
    start = state_after(0, tiers=False, name="fedasync", concurrency=1)
    whole, quarter = (state_after(1, tiers=False, name="fedasync", concurrency=1, mixing=share) for share in (1, 0.25))
    assert np.abs(whole[-12:] - start[-12:]).max() > 0.01
    np.testing.assert_allclose(quarter, 0.75 * start + 0.25 * whole, rtol=1e-5, atol=1e-6)
