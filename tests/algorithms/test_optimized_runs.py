"""Client optimisers in whole runs: what is charged, kept, and refused."""

import numpy as np
import pytest

import fedactors
from fedactors import Scenario
from fedactors.errors import ScenarioError
from fedactors.models.network import initial
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import play
from fedactors.simulation.verify import verify
from tests.algorithms.test_runs import algorithm, replayed, run, scenario


@pytest.mark.parametrize("name", ["fed-ams", "fed-lamb"])
def test_adaptive_clients_move_twice_as_much(name):
    plain, twice = (replayed(algorithm=one)["bytes"] for one in ("fed-sgd", name))
    assert (twice["down"], twice["up"]) == (2 * plain["down"], 2 * plain["up"])


RATES = {"sgd": 0.3, "momentum": 0.05, "adam": 0.01, "amsgrad": 0.01, "lamb": 0.03}


@pytest.mark.parametrize("optimizer", RATES)
def test_fedavg_trains_with_any_optimizer_and_costs_the_same(optimizer, tmp_path):
    """IID clients; chance is 0.1. The plans do not look at the optimiser."""
    base = scenario(
        local={"epochs": 2, "batch": 8, "optimizer": optimizer},
        rounds=6,
        schedule={"name": "constant", "lr": RATES[optimizer]},
    ).dump()
    base["task"]["partition"] = {"name": "iid", "samples": 100}
    found = fedactors.run(Scenario.model_validate(base), tmp_path / "run", fleet="local")
    assert found.summary["final"]["accuracy"] > 0.4
    base["server"]["local"]["optimizer"] = {"name": "sgd"}
    assert (
        found.summary["digests"]["plans"]
        == play(prepare(Scenario.model_validate(base)), None, None)["digests"]["plans"]
    )


def test_the_scenario_shows_the_optimizer_with_its_options():
    resolved = scenario(local={"steps": 3, "optimizer": "adam"}).dump()
    plain = {"name": "sgd", "momentum": 0.0, "dampening": 0.0, "nesterov": False, "weight_decay": 0.0}
    expected = {"name": "adam", "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
    assert resolved["server"]["local"]["optimizer"] == expected
    assert scenario().dump()["server"]["local"]["optimizer"] == plain


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fed-lamb", '"adam", but "fed-lamb" brings its own'),
        ("fednova", '"adam", but "fednova" brings its own'),
        ("scaffold", '"adam" with "scaffold": its control variates'),
        ("fsl", '"adam" with "fsl": the server\'s rate is coupled'),
    ],
)
def test_an_optimizer_that_the_algorithm_cannot_use_is_refused(name, message):
    local = {"epochs": 1, "optimizer": "adam"}
    with pytest.raises(ScenarioError, match=message):
        prepare(scenario(algorithm=name, local=local))
    if name == "fsl":
        prepare(scenario(algorithm={"name": "fsl", "server_lr_base": 0.05}, local=local))


def test_vhat_and_kept_momentum_live_on_the_fleet(tmp_path):
    """persist differs from reset once a client is asked again, and not before."""
    for rounds, same in ((1, True), (4, False)):
        states = [
            run(
                tmp_path,
                f"{mode}-{rounds}",
                rounds=rounds,
                cohort="all",
                algorithm=algorithm("fed-lamb", momentum=mode),
            )
            for mode in ("reset", "persist")
        ]
        one, other = (found.state["x"] for found in states)
        assert np.allclose(one, other, rtol=1e-4, atol=1e-6) == same
        assert (states[0].state["vhat"] >= np.float32(1e-6)).all()
        assert (states[0].state["vhat"] > np.float32(1e-6)).any()


def test_a_round_that_counts_nobody_leaves_theta_and_vhat(tmp_path):
    found = run(tmp_path, algorithm="fed-ams", participation="A", rounds=1, local={"steps": 1000}, deadline="450ms")
    assert np.array_equal(found.state["x"], initial(prepare(scenario()).model, 5))
    assert (found.state["vhat"] == np.float32(1e-6)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fed-lamb", "fed-ams", "fednova"])
def test_verify_is_green_with_dropout_on(name):
    """Equal digests on the local fleet and on Ray with one to three actors, with a deadline and kept momentum."""
    options = {"momentum": "persist"} if name != "fednova" else {}
    base = scenario(algorithm=algorithm(name, **options), cohort=8, deadline="600ms").dump()
    base["task"]["model"] = {"name": "mlp", "hidden": [16], "dropout": 0.5}
    found = verify(Scenario.model_validate(base))
    assert found["equal"], found
