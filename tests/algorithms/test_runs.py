"""Server learning and client state in whole runs: what is charged, what is trained, and what composes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import fedactors
from fedactors import Scenario, registry
from fedactors.data.batches import bounds, sequence
from fedactors.errors import ScenarioError
from fedactors.models.loss_description import LossDescription
from fedactors.models.network import initial
from fedactors.simulation.loaded_data import clients_data, own_of
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import play
from fedactors.simulation.runner import load
from fedactors.streams import Purpose
from fedactors.workload import workload

BASE = {
    "name": "small",
    "seed": 5,
    "task": {
        "dataset": "digits",
        "model": {"name": "mlp", "hidden": [16]},
        "partition": {"name": "classes", "classes": 2, "samples": 40},
    },
    "population": [{"name": "phones", "count": 10, "compute": {"per_sample": "10ms", "spread": 0.8}}],
    "server": {
        "rounds": 3,
        "cohort": 5,
        "local": {"epochs": 1, "batch": 8},
        "schedule": {"name": "constant", "lr": 0.1},
        "data": {"name": "iid", "samples": 50},
    },
}
OPTIONS = {"dsl": {"server_lr": 0.05}}


def scenario(**server):
    return Scenario.model_validate({**BASE, "server": {**BASE["server"], **server}})


def algorithm(name, **options):
    return {"name": name, **OPTIONS.get(name, {}), **options}


def run(tmp_path, name="run", **server):
    return fedactors.run(scenario(**server), tmp_path / name, fleet="local")


def torch_sgd(x, samples, labels, order, work, lr):
    """LocalSGD with torch.optim on the given batches."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    nn.utils.vector_to_parameters(torch.from_numpy(x).clone(), net.parameters())
    optimiser = torch.optim.SGD(net.parameters(), lr=lr)
    for first, last in bounds(work, work.wanted):
        batch = torch.from_numpy(order[first:last])
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(torch.from_numpy(samples)[batch]), torch.from_numpy(labels)[batch]).backward()
        optimiser.step()
    return nn.utils.parameters_to_vector(net.parameters()).detach().numpy()


def test_fsl_without_weight_is_fedavg_with_the_same_global_rate_bitwise(tmp_path):
    """I-F1 on the fleet: the server's draws disturb nothing."""
    plain = run(tmp_path, "a", algorithm=algorithm("fedavg", global_lr=2.0), participation="uniform")
    silent = run(tmp_path, "b", algorithm=algorithm("fsl", server_weight=0.0, global_lr=2.0))
    assert np.array_equal(plain.state["x"], silent.state["x"])
    assert plain.summary["digests"]["plans"] == silent.summary["digests"]["plans"]


@pytest.mark.parametrize("local", [{"clip": {"norm": 0.5}}, {"optimizer": {"name": "sgd", "weight_decay": 0.1}}])
def test_the_options_of_scaffold_coincide_for_a_single_step(tmp_path, local):
    """I-SC3: the gradient at x is that of the only step, clipped as it is and with its penalty."""
    one, other = (
        run(
            tmp_path, name, algorithm={"name": "scaffold", "option": name}, local={"steps": 1, "batch": 8, **local}
        ).state
        for name in ("I", "II")
    )
    assert np.abs(one["c"]).max() > 0.01
    np.testing.assert_allclose(one["c"], other["c"], atol=1e-5)
    np.testing.assert_allclose(one["x"], other["x"], atol=1e-5)


def test_dsl_without_a_rate_is_ds_bitwise(tmp_path):
    """I-F8 on the fleet."""
    one = run(tmp_path, "a", algorithm=algorithm("ds"))
    other = run(tmp_path, "b", algorithm={"name": "dsl", "server_lr": 0.0})
    assert np.array_equal(one.state["x"], other.state["x"])


def test_a_round_of_fsl_is_an_aggregate_and_the_servers_sgd(tmp_path):
    """The server's steps, taken by torch.optim on the batches of its own stream, from FedAvg's aggregate."""
    local = {"epochs": 2, "batch": 8}
    aggregate = run(
        tmp_path, "a", rounds=1, local=local, algorithm=algorithm("fedavg", global_lr=5**0.5), participation="uniform"
    )
    found = run(tmp_path, "b", rounds=1, local=local, algorithm=algorithm("fsl", server_batch=7, server_epochs=2))
    _, _, _, (x, y, _) = load(prepare(scenario(rounds=1, local=local, algorithm="fsl")))
    work = workload(50, 7, epochs=2, steps=None)
    order = sequence(5, -1, 0, np.arange(50), work, work.wanted, Purpose.SERVER_BATCH)
    rate = 5**0.5 * 0.1 * 10 / work.wanted  # K = 10, K_0 = 16
    expected = torch_sgd(aggregate.state["x"], x, y, order, work, rate)
    np.testing.assert_allclose(found.state["x"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names("algorithms"))
def test_pretraining_is_centralised_sgd_before_any_algorithm(name, tmp_path):
    """I-F12: with 0 epochs the identity; else LocalSGD on D_0, whose samples are charged before the first round."""
    options = {"algorithm": algorithm(name), "compute_per_sample": "1s", "rounds": 1}
    calm, none, some = (
        run(tmp_path, label, pretraining=pretraining, **options)
        for label, pretraining in (("a", None), ("b", {"epochs": 0}), ("c", {"epochs": 3, "lr": 0.2, "batch": 9}))
    )
    assert none.summary["digests"] == calm.summary["digests"]
    assert some.summary["virtual_seconds"] == pytest.approx(calm.summary["virtual_seconds"] + 150)
    prepared = prepare(scenario(pretraining={"epochs": 3, "lr": 0.2, "batch": 9}, **options))
    task, _, _, own = load(prepared)
    from fedactors.learning.central_learner import CentralLearner

    start, work = initial(task.model, 5), task.pretraining.work
    order = sequence(5, -2, 0, np.arange(50), work, work.wanted, Purpose.SERVER_BATCH)
    moved = CentralLearner(task.model, 5, own).pretrain(torch.from_numpy(start), 0.2, work)
    np.testing.assert_allclose(moved, torch_sgd(start, own.x, own.y, order, work, 0.2), rtol=1e-4, atol=1e-5)


def replayed(**server):
    return play(prepare(scenario(**server)), None, None)


def test_server_work_takes_virtual_time_where_the_algorithm_puts_it():
    """FSL after the aggregation, FSL-p beside the clients: 50 samples at 10 s outlast clients that take a second."""
    plain, fsl, beside = (
        replayed(algorithm=algorithm(name), compute_per_sample="10s") for name in ("fedavg", "fsl", "fsl-p")
    )
    assert fsl["virtual_seconds"] == pytest.approx(plain["virtual_seconds"] + 3 * 500)
    assert beside["virtual_seconds"] == pytest.approx(3 * 500)
    assert (
        replayed(algorithm=algorithm("fsl", server_weight=0.0), compute_per_sample="10s")["digests"] == plain["digests"]
    )


def test_shared_samples_are_charged_once_per_client():
    """50 images of 64 bytes and a label of one; lazily for those asked, upfront for all ten."""
    plain, lazy, upfront = (
        replayed(algorithm=one, rounds=20)
        for one in (algorithm("fedavg"), algorithm("ds"), algorithm("ds", share="upfront"))
    )
    assert lazy["bytes"]["down"] - plain["bytes"]["down"] == lazy["clients_heard"] * 50 * 65
    assert upfront["bytes"]["down"] - plain["bytes"]["down"] == 10 * 50 * 65
    assert lazy["bytes"]["up"] == plain["bytes"]["up"]


def test_shared_samples_join_every_clients_own():
    prepared = prepare(scenario(algorithm="ds"))
    task, samples, _, (x, y, _) = load(prepared)
    assert prepared.sizes.tolist() == [40] * 10
    assert [work.wanted for work in task.workloads] == [-(-90 // 8)] * 10
    plain = load(prepare(scenario(algorithm="fedavg")))[1]
    for client in range(10):
        held = samples.split.of(client)
        assert np.array_equal(held[:40], plain.split.of(client))
        assert np.array_equal(samples.x[held[40:]], x)
        assert np.array_equal(samples.y[held[40:]], y)


def test_weights_of_the_servers_samples_need_a_loss_that_knows_them():
    prepared = prepare(scenario(algorithm="fsl"))
    data, split, _ = clients_data(prepared)
    weighed = replace(data, weights=np.ones(len(data.y), np.float32))
    assert own_of(prepared, data, split).weights is None
    with pytest.raises(ScenarioError, match=r"server\.data: samples have weights, of which the loss cross_entropy"):
        own_of(prepared, weighed, split)
    able = replace(prepared, model=replace(prepared.model, loss=LossDescription("cross_entropy", "class")))
    assert own_of(able, weighed, split).weights.tolist() == [1.0] * 50


def test_scaffold_moves_twice_as_much():
    plain, twice = (replayed(algorithm=name)["bytes"] for name in ("fedavg", "scaffold"))
    assert (twice["down"], twice["up"]) == (2 * plain["down"], 2 * plain["up"])


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names("algorithms"))
@pytest.mark.parametrize("scheme", ["A", "B", "C", "uniform"])
def test_every_algorithm_runs_with_every_scheme_under_a_deadline(name, scheme, tmp_path):
    """Deadline 450 ms: some clients finish, some do part of their steps, some none."""
    result = run(tmp_path, algorithm=algorithm(name), participation=scheme, cohort="all", deadline="450ms")
    outcomes = result.summary["outcomes"]
    assert outcomes["complete"]
    assert outcomes["partial"]
    assert all(np.isfinite(value).all() for value in result.state.values())


@pytest.mark.parametrize(("name", "learns"), [("fsl", True), ("fsl-p", True), ("scaffold", False), ("feddyn", False)])
def test_after_a_round_that_counts_nobody_only_a_server_with_data_has_moved(name, learns, tmp_path):
    """Scheme A discards a round in which no client completes its steps."""
    result = run(
        tmp_path, algorithm=algorithm(name), participation="A", rounds=1, local={"steps": 1000}, deadline="450ms"
    )
    assert result.summary["outcomes"]["partial"]
    start = initial(prepare(scenario()).model, 5)
    assert np.array_equal(result.state["x"], start) != learns


def test_the_papers_weights_are_the_default():
    chosen = {name: scenario(algorithm=algorithm(name)).server.participation.name for name in ("fedavg", "fsl", "ds")}
    assert chosen == {"fedavg": "samples", "fsl": "uniform", "ds": "samples"}
    assert scenario(algorithm="fsl", participation="C").server.participation.name == "C"
    resolved = scenario(algorithm="scaffold").dump()
    assert resolved["server"]["participation"] == {"name": "uniform"}
    assert Scenario.model_validate(resolved).dump() == resolved


@pytest.mark.parametrize(
    "server", [{"algorithm": "fsl"}, {"algorithm": "ds"}, {"pretraining": {"epochs": 1}}, {"dissimilarity_every": 2}]
)
def test_who_needs_server_data_says_so(server):
    with pytest.raises(ValueError, match=r"server.data"):
        scenario(**server, data=None)


def test_server_data_that_do_not_fit_are_refused_before_the_run():
    with pytest.raises(ScenarioError, match="glyphs are square images of one channel"):
        prepare(
            Scenario.model_validate(
                {
                    **BASE,
                    "task": {**BASE["task"], "dataset": "cifar10"},
                    "server": {**BASE["server"], "data": "glyphs"},
                }
            )
        )


def test_dissimilarities_are_those_of_full_gradients(tmp_path):
    """xi^2 and G^2 at the models that rounds 1 and 3 start from, against autograd on all samples at once."""
    result = run(tmp_path, dissimilarity_every=2)
    assert ["xi2" in row for row in result.metrics] == [True, False, True]
    task, samples, _, (x, y, _) = load(prepare(scenario()))
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    nn.utils.vector_to_parameters(torch.from_numpy(initial(task.model, 5)), net.parameters())

    def slope(images, labels):
        net.zero_grad()
        nn.functional.cross_entropy(net(torch.from_numpy(images)), torch.from_numpy(labels)).backward()
        return torch.cat([p.grad.flatten() for p in net.parameters()]).double()

    held = [samples.split.of(client) for client in range(10)]
    each = torch.stack([slope(samples.x[rows], samples.y[rows]) for rows in held])
    first = result.metrics[0]
    assert first["g2"] == pytest.approx(float(((each - each.mean(0)) ** 2).sum(1).mean()), rel=1e-4)
    assert first["xi2"] == pytest.approx(float(((slope(x, y) - each.mean(0)) ** 2).sum()), rel=1e-3)


def test_dissimilarities_of_the_servers_data_with_themselves_vanish():
    """I-F10: identical clients that hold the server's data: G = 0 and xi = 0."""
    from fedactors.learning.dissimilarity import dissimilarity, gradient_sum

    gradient = np.linspace(-1, 1, 50).astype(np.float32)
    found = dissimilarity([gradient_sum([gradient] * 3), gradient_sum([gradient])], gradient)
    assert found["g2"] == pytest.approx(0.0, abs=1e-12)
    assert found["xi2"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_server_learns_on_a_gpu_if_it_has_one(tmp_path):
    plain = run(tmp_path, "cpu", algorithm="fsl")
    quick = Scenario.model_validate({**scenario(algorithm="fsl").dump(), "cluster": {"server_gpus": 1.0}})
    found = fedactors.run(quick, tmp_path / "gpu", fleet="local")
    np.testing.assert_allclose(found.state["x"], plain.state["x"], rtol=1e-3, atol=1e-5)
