"""Every timing policy with every algorithm of the registry: defined and right, or refused with the reason."""

import numpy as np
import pytest

import fedactors
from fedactors import Scenario, registry
from fedactors.data.batches import sequence
from fedactors.errors import ScenarioError
from fedactors.models.network import initial
from fedactors.simulation.prepare import prepare
from fedactors.simulation.resume import checkpoint
from fedactors.simulation.runner import load
from fedactors.simulation.tasks import task_of
from tests.algorithms.test_runs import BASE, OPTIONS, torch_sgd

POLICIES = {
    "fedasync": {"name": "fedasync", "concurrency": 4},
    "fedbuff": {"name": "fedbuff", "concurrency": 6, "buffer": 3},
    "semi-synchronous": {"name": "semi-synchronous", "concurrency": 6, "period": "1s"},
}
UNDEFINED = {("fedasync", "fsl-p"), ("fedasync", "scaffold")}
UNDEFINED |= {("fedasync", name) for name in ("mixed-pt", "mixed-1w")}
UNDEFINED |= {
    (policy, name) for policy in POLICIES for name in ("feddyn", "fed-ams", "fed-lamb", "mixed-2w", "qfedavg")
}
PAIRS = [(policy, name) for policy in POLICIES for name in registry.names("algorithms")]


def scenario(timing, algorithm="fedavg", **server):
    base = {key: value for key, value in BASE["server"].items() if key != "cohort" or timing == "synchronous"}
    options = {"name": algorithm, **OPTIONS.get(algorithm, {})} if isinstance(algorithm, str) else algorithm
    return Scenario.model_validate(
        {**BASE, "server": {**base, "rounds": 6, "timing": timing, "algorithm": options, **server}}
    )


def run(folder, *args, **server):
    return fedactors.run(scenario(*args, **server), folder, fleet="local", report=False)


def test_the_suite_knows_every_policy():
    of_tiers = {"hierarchical"}  # tests/clock/test_hierarchy.py
    assert {*POLICIES, "synchronous", *of_tiers} == set(registry.names("timing"))


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "name"), PAIRS)
def test_a_pair_runs_with_older_models_or_is_refused_with_the_reason(tmp_path, policy, name):
    if (policy, name) in UNDEFINED:
        with pytest.raises(ValueError, match=rf'algorithm "{name}" is undefined under timing "{policy}": .+ .+'):
            scenario(POLICIES[policy], name)
        return
    found = run(tmp_path / "run", POLICIES[policy], name)
    assert found.summary["ended_because"] == "all rounds done"
    assert found.summary["staleness"]["max"] > 0, "nothing was asynchronous about it"
    assert sum(found.summary["outcomes"].values()) == found.summary["asked"]
    assert all(np.isfinite(vector).all() for vector in found.state.values())
    begin = initial(prepare(scenario(POLICIES[policy], name)).model, BASE["seed"])
    assert not np.array_equal(found.state["x"], begin)


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names("algorithms"))
@pytest.mark.parametrize(
    "timing", [{"name": "fedbuff", "concurrency": 1, "buffer": 1}, {"name": "fedasync", "concurrency": 1, "mixing": 1}]
)
def test_with_nobody_else_in_flight_a_policy_is_a_synchronous_round_of_one(tmp_path, timing, name):
    """There is no second code path: the same Plans, the same metrics, the same bits."""
    if (timing["name"], name) in UNDEFINED:
        pytest.skip("undefined")
    one = run(tmp_path / "one", timing, name, participation="uniform")
    other = run(tmp_path / "other", "synchronous", name, participation="uniform", cohort=1)
    assert one.summary["digests"] == other.summary["digests"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_is_what_a_plain_loop_over_its_plans_gives(tmp_path, policy):
    """The papers' server lines, written down once more, with local steps by torch.optim from the right versions."""
    made = scenario(POLICIES[policy], participation="uniform")
    found = fedactors.run(made, tmp_path / "run", fleet="local", report=False)
    prepared = prepare(made)
    samples = load(prepared)[1]
    versions = [initial(prepared.model, BASE["seed"])]
    for plan in prepared.clock():
        x, heard = versions[-1].astype(np.float64), list(plan.heard())
        after = x.copy()
        for order in heard:
            work, base = prepared.workloads[order.client], versions[order.base]
            batches = sequence(
                BASE["seed"], order.client, order.base, samples.split.of(order.client), work, order.steps
            )
            new, tau = torch_sgd(base, samples.x, samples.y, batches, work, 0.1), plan.version - order.base
            if policy == "fedasync":
                alpha = 0.6 * (tau + 1) ** -0.5
                after = (1 - alpha) * x + alpha * new
            else:
                s = (1 + tau) ** -0.5 if policy == "fedbuff" else 1.0
                after += s * (new.astype(np.float64) - base) / len(heard)
        versions.append(after.astype(np.float32))
    assert np.allclose(found.state["x"], versions[-1], atol=2e-5)
    assert found.summary["plans"] == len(versions) - 1


@pytest.mark.parametrize("name", ["fedavg", "ds"])
def test_clients_that_return_the_model_unchanged_leave_fedasyncs_unchanged(tmp_path, name):
    """(1 - alpha) x + alpha x is x, bit for bit; a rate so small that no step can move a float32 stands for none."""
    timing = {**POLICIES["fedasync"], "mixing": 0.37}
    found = run(tmp_path / "run", timing, name, schedule={"name": "constant", "lr": 1e-37})
    assert np.array_equal(found.state["x"], initial(prepare(scenario(timing, name)).model, BASE["seed"]))


def test_scaffolds_control_stays_the_mean_of_the_clients_controls(tmp_path):
    """c = mean(c_i) although updates come from different versions, some of them twice from one client."""
    found = run(tmp_path / "run", POLICIES["fedbuff"], "scaffold", rounds=12)
    kept = dict(checkpoint.load(tmp_path / "run").saved().kept)
    mean = sum(one["c"].astype(np.float64) for one in kept.values()) / 10
    assert len(kept) > 5
    assert np.allclose(found.state["c"], mean, atol=1e-6)


def test_a_trip_trains_at_the_rate_of_the_version_it_began_from():
    """Staircase: a client sent version 0 does not know how far the server has got meanwhile."""
    made = scenario(POLICIES["fedbuff"], schedule={"name": "staircase", "lr": 0.5})
    prepared = prepare(made)
    seen = set()
    for plan in prepared.clock():
        task = task_of(plan, prepared, "cpu", last=False)
        for chunk in task.chunks:
            assert {0.5 / (base + 1) for base in chunk.base_versions} == {chunk.lr}
            seen |= {plan.version - base for base in chunk.base_versions}
        assert task.facts.lr == 0.5 / (plan.version + 1)
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"participation": "C"}, "asked in the same round"),
        ({"cohort": 3}, "cohort belongs to synchronous rounds"),
        ({"quorum": 3}, "quorum belongs to synchronous rounds"),
        ({"timing": {"name": "fedbuff", "concurrency": 11}}, "cannot come from 10 devices"),
        ({"timing": {"name": "fedbuff", "concurrency": 3, "buffer": 11}}, "cannot come from 10 devices"),
        ({"timing": {"name": "semi-synchronous", "concurrency": 3}}, "period"),
        ({"timing": "fedbufff"}, "fedbuff"),
    ],
)
def test_what_means_nothing_is_refused(changes, complaint):
    with pytest.raises((ValueError, ScenarioError), match=complaint):
        scenario(**{"timing": POLICIES["fedbuff"], **changes})
