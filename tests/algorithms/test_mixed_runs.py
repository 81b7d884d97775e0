"""Mixed federated learning in whole runs: time, traffic, and the identities that survive real gradients."""

import numpy as np
import pytest

import fedactors
from fedactors import Scenario
from fedactors.errors import ScenarioError
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import play
from tests.fleet.test_central import BASE

SERVER = {
    **BASE["server"],
    "rounds": 3,
    "participation": "uniform",
    "compute_per_sample": "1ms",
    "dissimilarity_every": None,
}
NET = """
from torch import nn

def normed(rate):
    normed = nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU()
    return nn.Sequential(nn.Flatten(), *normed, nn.Dropout(rate), nn.Linear(8, 2))
"""


def scenario(algorithm, task=None, **server):
    return Scenario.model_validate(
        {**BASE, "task": {**BASE["task"], **(task or {})}, "server": {**SERVER, "algorithm": algorithm, **server}}
    )


def run(tmp_path, algorithm, **server):
    return run_of(tmp_path, scenario(algorithm, **server))


def run_of(tmp_path, made):
    return fedactors.run(made, tmp_path / str(len(list(tmp_path.iterdir()))), fleet="local").state


def named(name, **options):
    return {"name": name, **options}


def test_with_single_steps_on_all_central_data_pt_one_way_and_example_transfer_are_one(tmp_path):
    """I-M1 with real gradients: whatever batches are drawn, each is all central data."""
    one = {"local": {"steps": 1, "batch": 5}}
    models = [run(tmp_path, named(f"mixed-{m}", central_batch=10_000), **one)["x"] for m in ("pt", "1w", "et")]
    np.testing.assert_allclose(models[1], models[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(models[2], models[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("rate", "names"), [(0.0, ("pt", "1w", "et")), (0.3, ("pt", "1w"))])
def test_they_are_one_where_training_is_not_evaluation(tmp_path, rate, names):
    """I-M1 with BatchNorm, of parameters: PT and 1-W have one mask of dropout, each client of ET has another one."""
    (tmp_path / "nets.py").write_text(NET)
    task = {"model": {"name": "torch", "factory": f"{tmp_path}/nets.py:normed", "arguments": {"rate": rate}}}
    one = {"local": {"steps": 1, "batch": 5}, "rounds": 1}
    made = [scenario(named(f"mixed-{name}", central_batch=10_000), task, **one) for name in names]
    trained = slice(-prepare(made[0]).model.buffer_values)
    first, *others = (run_of(tmp_path, each)["x"][trained] for each in made)
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-4, atol=1e-6)


def test_fsl_p_additive_is_parallel_training_on_the_same_batches(tmp_path):
    """I-X1 with real gradients; eta = 0.2: halved losses at twice the rate."""
    beside = named("fsl-p", form="additive", global_lr=1.0, server_lr_base=0.1, server_steps=4, server_batch=20)
    parallel = named("mixed-pt", central_lr=0.2, central_steps=4, central_batch=20)
    doubled = {"name": "constant", "lr": 0.4}
    np.testing.assert_allclose(
        run(tmp_path, parallel, schedule=doubled)["x"], run(tmp_path, beside)["x"], rtol=1e-4, atol=1e-6
    )


def test_two_way_takes_the_step_that_its_gradients_say(tmp_path):
    """I-M4 with real gradients: gc, gf before and after a round, where all did the same steps."""
    both = named("mixed-2w", merge_lr=0.5, central_batch=20)
    first, second = (run(tmp_path, both, rounds=rounds) for rounds in (2, 3))
    total = sum(state[name] for state in (first, second) for name in ("gc", "gf"))
    np.testing.assert_allclose(second["x"] - first["x"], -0.5 * 0.2 * 3 * total, rtol=1e-3, atol=1e-5)


def test_two_way_recovers_gradients_of_clients_that_were_cut_short(tmp_path):
    """With weights of 1/S: x+ - x = -eta_m (eta_c K_c (gc+ + gf) + eta (1/S) sum K_i (gf+ + gc)), K_i as got done.

    A step takes 50 ms, or 150 ms on slow devices, which do two of three in the 450 ms there are.
    """
    both = named("mixed-2w", merge_lr=0.5, central_batch=20)
    speeds = {"fast": "10ms", "slow": "30ms"}
    groups = [{"name": name, "count": 4, "compute": {"per_sample": each}} for name, each in speeds.items()]

    def cut_short(rounds):
        made = scenario(both, rounds=rounds, deadline="450ms").dump()
        return Scenario.model_validate({**made, "population": groups})

    *_, last = prepare(cut_short(3)).clock()
    done = [order.steps for order in last.orders]
    assert set(done) == {2, 3}
    first, second = (run_of(tmp_path, cut_short(rounds)) for rounds in (2, 3))
    central, federated = second["gc"] + first["gf"], second["gf"] + first["gc"]
    expected = -0.5 * 0.2 * (3 * central + sum(done) / len(done) * federated)
    np.testing.assert_allclose(second["x"] - first["x"], expected, rtol=1e-3, atol=1e-5)


def replayed(algorithm, **server):
    return play(prepare(scenario(algorithm, **server)), None, None)


def test_gradients_and_central_work_are_charged_where_they_fall():
    """1-W waits for its gradient, PT and 2-W for the slower side; 1-W and 2-W send two models down.

    A model of 538 parameters at 1 kB/s; a client's 15 samples at 10 ms. 1-W: 60 samples at 100 ms before the broadcast.
    """
    slow = [{"name": "phones", "count": 8, "network": {"down": "1 kB/s", "up": "1 MB/s"}}]
    model, rounds = 4 * (64 * 8 + 8 + 8 * 2 + 2), 3

    def at(name, per_sample="0ms", **options):
        built = scenario(named(name, central_batch=60, **options), compute_per_sample=per_sample).dump()
        return play(prepare(Scenario.model_validate({**built, "population": slow})), None, None)

    once, twice = at("mixed-pt"), at("mixed-1w")
    assert twice["virtual_seconds"] - once["virtual_seconds"] == pytest.approx(rounds * model / 1000)
    assert twice["bytes"]["down"] == 2 * once["bytes"]["down"]
    assert at("mixed-2w")["bytes"] == twice["bytes"]
    assert twice["bytes"]["up"] == once["bytes"]["up"]
    assert at("mixed-1w", "100ms")["virtual_seconds"] == pytest.approx(twice["virtual_seconds"] + rounds * 6)
    assert at("mixed-pt", "100ms", central_steps=1)["virtual_seconds"] == pytest.approx(rounds * 6)
    assert at("mixed-pt", "1us", central_steps=1)["digests"] == once["digests"]


def test_example_transfer_sends_batches_of_images():
    plain, batches = replayed(named("mixed-pt")), replayed(named("mixed-et", central_batch=7))
    images = 3 * 7 * (64 + 1)  # steps, samples, bytes of an image and a label
    assert batches["bytes"]["down"] - plain["bytes"]["down"] == plain["asked"] * images


def test_a_client_that_computes_both_losses_takes_as_long_as_both():
    """15 samples of its own at 10 ms; two central samples for each of them in Example Transfer."""
    plain, both = (prepare(scenario(named(name, central_batch=10))) for name in ("mixed-pt", "mixed-et"))
    assert both.population.per_sample.tolist() == (3 * plain.population.per_sample).tolist()
    times = [play(prepared, None, None)["virtual_seconds"] for prepared in (plain, both)]
    more = 3 * 2 * 15 * plain.population.per_sample.max() / 1e9  # rounds, central for own, samples
    assert times[1] - times[0] == pytest.approx(more, rel=0.05)


def test_both_sources_and_dissimilarities_are_in_the_rows(tmp_path):
    result = fedactors.run(scenario("mixed-2w", dissimilarity_every=2), tmp_path / "run", fleet="local")
    assert [row.get("gt2", -1) >= 0 for row in result.metrics] == [True, False, True]
    assert all(row["bt2"] >= 1 for row in result.metrics[::2])
    assert {"auc", "federated_accuracy", "central_loss"} <= result.metrics[0].keys()


def test_what_does_not_go_together_is_told_before_the_run():
    with pytest.raises(ValueError, match=r"server\.data"):
        scenario("mixed-pt", data=None)
    with pytest.raises(ValueError, match="central_weight"):
        scenario(named("mixed-pt", central_weight=1.0), dissimilarity_every=1)
    with pytest.raises(ScenarioError, match="a mean of gradients"):
        prepare(scenario("mixed-2w", local={"steps": 3, "batch": 5, "optimizer": "adam"}))
    with pytest.raises(ScenarioError, match="no central part"):
        prepare(scenario("mixed-pt", task={"split": None}))
    with pytest.raises(ScenarioError, match="accepted: 0 to 9"):
        prepare(scenario("mixed-pt", task={"split": {"name": "labels", "central": [10]}}))
