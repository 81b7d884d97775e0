"""Devices that arrive are members when the updates of a round are added: also where nobody was there before."""

import numpy as np
import pytest

import fedactors
from fedactors.models.network import initial
from fedactors.scenario.model import Scenario
from fedactors.simulation.prepare import prepare
from fedactors.simulation.resume import checkpoint

LATE = [{"name": "late", "count": 6, "arrive": "10s"}]
SOME_LATE = [{"name": "first", "count": 1}, {"name": "late", "count": 5, "arrive": "10ms"}]


def finished(path, algorithm, groups, **server):
    data = {
        "name": "arriving",
        "seed": 4,
        "task": {"dataset": "synthetic", "model": "logistic", "partition": "natural"},
        "population": groups,
        "server": {
            "rounds": 3,
            "algorithm": algorithm,
            "participation": "uniform",
            "local": {"steps": 1, "batch": 30},
            "schedule": {"name": "constant", "lr": 0.1},
            **server,
        },
    }
    made = Scenario.from_data(data, "arriving.yaml")
    state = fedactors.run(made, path, fleet="local", report=False).state
    return made, state, dict(checkpoint.load(path).saved().kept)


@pytest.mark.parametrize("groups", [LATE, SOME_LATE], ids=["nobody before", "one before"])
@pytest.mark.parametrize("timing", ["synchronous", {"name": "fedbuff", "concurrency": 4, "buffer": 2}], ids=str)
def test_the_servers_variate_is_the_mean_of_those_who_are_there(tmp_path, groups, timing):
    """I-SC2."""
    _, state, kept = finished(tmp_path / "run", "scaffold", groups, timing=timing)
    assert kept
    assert np.isfinite(state["x"]).all()
    np.testing.assert_allclose(state["c"], sum(one["c"] for one in kept.values()) / 6, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("membership", [None, "vanilla"])
def test_the_memory_of_feddyn_is_a_mean_over_those_whose_updates_it_has(tmp_path, membership):
    """All of six devices arrive before the first round opens, and all are heard: x_1 = x_0 + 2 mean Delta (I-FD2)."""
    found = {}
    for name in ("feddyn", "fedavg"):
        made, state, _ = finished(tmp_path / name, name, LATE, rounds=1, membership=membership)
        found[name] = state["x"] - initial(prepare(made).model, 4)
    np.testing.assert_allclose(found["feddyn"], 2 * found["fedavg"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("membership", [None, "vanilla"])
def test_one_that_was_there_and_five_that_arrive_are_six(tmp_path, membership):
    """FedDyn with single steps of all: in the second round R is (1/6) of all r_i, not the sum of them.

    x_2 = mean theta_i + R with R = (r_0 + sum of the second round's changes) / 6. An objective takes those who arrived
    in the first round in with the second.
    """
    _, before, first = finished(tmp_path / "one", "feddyn", SOME_LATE, rounds=1, membership=membership)
    _, after, kept = finished(tmp_path / "two", "feddyn", SOME_LATE, rounds=2, membership=membership)
    assert (len(first), len(kept)) == (1, 6)
    old = {client: first[client]["r"] if client in first else 0.0 for client in kept}
    moves = [kept[client]["r"] - old[client] for client in kept]
    memory = sum(one["r"] for one in kept.values()) / 6
    np.testing.assert_allclose(after["r"], memory, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after["x"], before["x"] + sum(moves) / 6 + memory, rtol=1e-4, atol=1e-6)
