"""2-way gradient transfer that begins with the gradients of a file: by its identity, and what is refused."""

import numpy as np
import pytest
from safetensors.numpy import save_file

import fedactors
from fedactors.errors import ScenarioError
from fedactors.simulation.prepare import prepare
from tests.algorithms.test_mixed_runs import named, scenario

PARAMETERS = 64 * 8 + 8 + 8 * 2 + 2


def gradients(seed):
    return np.random.default_rng(seed).normal(size=PARAMETERS).astype(np.float32)


def run(tmp_path, name, path=None, **options):
    given = {"initial_gradients": str(path)} if path else {}
    rounds = options.pop("rounds", 1)
    algorithm = named("mixed-2w", central_batch=20, **given, **options)
    made = scenario(algorithm, rounds=rounds, local={"steps": 1, "batch": 5})
    return fedactors.run(made, tmp_path / name, fleet="local")


@pytest.mark.parametrize("names", [("gc", "gf"), ("gc",), ("gf",)])
def test_a_first_single_step_is_longer_by_what_is_given(tmp_path, names):
    """K = 1: clients step along g_i + gc and the centre along g_c + gf, so x moves by -eta_m (eta gc + eta_c gf) more.

    The batches and the gradients at x are those of the run without.
    """
    given = {name: gradients(seed) for seed, name in enumerate(names)}
    save_file(given, tmp_path / "given.safetensors")
    options = {"central_lr": 0.05, "merge_lr": 0.5}
    plain = run(tmp_path, "plain", **options).state
    helped = run(tmp_path, "helped", tmp_path / "given.safetensors", **options).state
    more = -0.5 * (0.2 * given.get("gc", 0.0) + 0.05 * given.get("gf", 0.0))
    np.testing.assert_allclose(helped["x"] - plain["x"], more, atol=1e-6)
    np.testing.assert_allclose(helped["gc"], plain["gc"], atol=1e-5)
    np.testing.assert_allclose(helped["gf"], plain["gf"], atol=1e-5)


def test_the_state_that_a_run_leaves_is_such_a_file(tmp_path):
    first = run(tmp_path, "first", rounds=3)
    checkpoint = tmp_path / "first/checkpoint/model.safetensors"
    algorithm = scenario(named("mixed-2w", initial_gradients=str(checkpoint))).server.algorithm
    found = algorithm.given(PARAMETERS)
    assert found["gc"].tolist() == first.state["gc"].tolist()
    assert found["gf"].tolist() == first.state["gf"].tolist()


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        (None, "No such file"),
        ({"c": np.zeros(PARAMETERS, np.float32)}, r"holds c \(accepted: gc, gf or both\)"),
        ({"gc": np.zeros(7, np.float32)}, rf"gc is float32 of shape \[7\] \(accepted: {PARAMETERS} numbers"),
        ({"gf": np.zeros(PARAMETERS)}, "gf is float64"),
        ({"gf": np.full(PARAMETERS, np.nan, np.float32)}, "gf holds NaN or Inf"),
    ],
)
def test_what_cannot_be_used_is_one_message(tmp_path, tensors, says):
    path = tmp_path / "given.safetensors"
    if tensors is not None:
        save_file(tensors, path)
    with pytest.raises(ScenarioError, match=says):
        prepare(scenario(named("mixed-2w", initial_gradients=str(path))))
