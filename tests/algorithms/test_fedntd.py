"""FedNTD: its loss by hand and by the authors' way of leaving the label out, whole rounds by torch, and its limits."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import fedactors
from fedactors import Scenario
from fedactors.algorithms.fedntd import FedNTD
from fedactors.data.batches import bounds, sequence
from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import TaskSetting
from fedactors.models.network import initial
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load

BASE = {
    "name": "not-true",
    "seed": 5,
    "task": {
        "dataset": "digits",
        "model": {"name": "mlp", "hidden": [16]},
        "partition": {"name": "classes", "classes": 2, "samples": 40},
    },
    "population": [{"name": "phones", "count": 4, "compute": {"per_sample": "10ms"}}],
    "server": {
        "rounds": 2,
        "cohort": "all",
        "local": {"epochs": 2, "batch": 9},
        "schedule": {"name": "constant", "lr": 0.1},
    },
}


def scenario(**server):
    return Scenario.model_validate({**BASE, "server": {**BASE["server"], **server}})


def run(folder, **server):
    return fedactors.run(scenario(**server), folder, fleet="local", report=False)


def logits(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_the_loss_by_hand():
    """Three classes, label 0: what is left of the global model's outputs is (ln 3, 0), of the client's (0, 0).

    q(x) = (3/4, 1/4), q(y) = (1/2, 1/2): L_NTD = 3/4 ln(3/2) + 1/4 ln(1/2) = 0.1308; its slopes are q(y) - q(x), and
    none for the label's output. With outputs twice as large and tau = 2 the shares are the same: 4 times the loss, and
    tau^2 / tau = 2 times the slopes.
    """
    mine = logits([7.0, 0.0, 0.0]).requires_grad_()
    theirs = logits([-5.0, np.log(3.0), 0.0])
    label = torch.tensor([0])
    found = FedNTD(beta=0.5).added_loss(mine, label, theirs)
    exact = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    assert found.tolist() == pytest.approx([0.5 * exact])
    (slopes,) = torch.autograd.grad(found.sum(), mine)
    assert slopes.tolist() == [pytest.approx([0.0, 0.5 * (0.5 - 0.75), 0.5 * (0.5 - 0.25)])]
    warm = FedNTD(beta=0.5, tau=2.0).added_loss(mine, label, 2 * theirs)
    assert warm.tolist() == pytest.approx([4 * 0.5 * exact])
    (slopes,) = torch.autograd.grad(warm.sum(), mine)
    assert slopes.tolist() == [pytest.approx([0.0, -0.25, 0.25])]


def left_out(outputs, labels):
    """Return outputs without those of the labels, (batch, classes - 1), as the authors' code does."""
    classes = outputs.shape[1]
    places = torch.arange(classes).repeat(len(labels), 1)
    return outputs.gather(1, places[places != labels[:, None]].view(-1, classes - 1))


def not_true(outputs, labels, theirs, tau):
    """Return the mean of L_NTD, by torch's own divergence."""
    mine, shares = left_out(outputs, labels) / tau, (left_out(theirs, labels) / tau).softmax(1)
    return tau**2 * functional.kl_div(mine.log_softmax(1), shares, reduction="batchmean")


@pytest.mark.parametrize("tau", [0.5, 1.0, 3.0])
def test_the_loss_is_the_divergence_of_what_is_left_and_never_negative(tau):
    draws = torch.Generator().manual_seed(1)
    outputs, theirs = (5 * torch.randn(50, 7, generator=draws, dtype=torch.float64) for _ in range(2))
    labels = torch.randint(7, (50,), generator=draws)
    found = FedNTD(tau=tau).added_loss(outputs, labels, theirs)
    assert float(found.mean()) == pytest.approx(float(not_true(outputs, labels, theirs, tau)))
    assert (found >= 0).all()
    same = FedNTD(tau=tau).added_loss(theirs, labels, theirs)
    assert same.abs().max() < 1e-12


def test_outputs_of_any_size_have_a_gradient():
    """exp(1000) is no float: the label's own output takes part in nothing."""
    outputs = torch.tensor([[1000.0, -1000.0, 3.0], [0.0, 1000.0, 900.0]]).requires_grad_()
    theirs = torch.tensor([[2000.0, 5.0, -2000.0], [2000.0, 0.0, -3.0]])
    found = FedNTD().added_loss(outputs, torch.tensor([0, 0]), theirs)
    (slopes,) = torch.autograd.grad(found.sum(), outputs)
    assert found.isfinite().all()
    assert slopes.isfinite().all()
    assert not slopes[:, 0].any()


def torch_round(x, data, works, version, beta, tau):
    """Return the mean, by samples, of models that plain torch has trained from x, client after client."""
    models, held = [], []
    for client, work in enumerate(works):
        mine = data.split.of(client)
        net, teacher = (nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10)) for _ in range(2))
        for one in (net, teacher):
            nn.utils.vector_to_parameters(torch.from_numpy(x).clone(), one.parameters())
        optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
        order = torch.from_numpy(sequence(5, client, version, mine, work, work.wanted))
        for first, last in bounds(work, work.wanted):
            samples, labels = (torch.from_numpy(part)[order[first:last]] for part in (data.x, data.y))
            with torch.no_grad():
                theirs = teacher(samples)
            outputs = net(samples)
            loss = functional.cross_entropy(outputs, labels) + beta * not_true(outputs, labels, theirs, tau)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        models.append(nn.utils.parameters_to_vector(net.parameters()).detach().numpy())
        held.append(len(mine))
    return np.average(models, axis=0, weights=held).astype(np.float32)


@pytest.mark.parametrize("options", [{"beta": 1.0, "tau": 1.0}, {"beta": 2.0, "tau": 3.0}])
def test_two_rounds_are_those_of_a_plain_torch_loop(tmp_path, options):
    """Real digits, four clients of two classes each, batches of which the last one is smaller."""
    found = run(tmp_path / "run", algorithm={"name": "fedntd", **options})
    prepared = prepare(scenario(algorithm="fedntd"))
    data = load(prepared)[1]
    x = initial(prepared.model, 5)
    for version in range(2):
        x = torch_round(x, data, prepared.workloads, version, **options)
    np.testing.assert_allclose(found.state["x"], x, rtol=1e-4, atol=1e-5)
    plain = run(tmp_path / "plain", algorithm="fedavg")
    assert np.abs(plain.state["x"] - x).max() > 1e-2, "another path than FedAvg's"


def test_without_weight_it_is_fedavg(tmp_path):
    """With another engine, which rounds differently; the clients' losses are the same, too."""
    found = run(tmp_path / "none", algorithm={"name": "fedntd", "beta": 0.0})
    plain = run(tmp_path / "plain", algorithm="fedavg")
    np.testing.assert_allclose(found.state["x"], plain.state["x"], rtol=1e-4, atol=1e-6)
    assert found.metrics[-1]["train_loss"] == pytest.approx(plain.metrics[-1]["train_loss"], rel=1e-4)


def test_the_first_step_is_that_of_fedavg_and_its_loss_is_told_as_it_is(tmp_path):
    """At y = x both models say the same, and the divergence is flat there."""
    one, other = (
        run(tmp_path / name, rounds=1, local={"steps": 1, "batch": 9}, algorithm={"name": name})
        for name in ("fedntd", "fedavg")
    )
    np.testing.assert_allclose(one.state["x"], other.state["x"], rtol=1e-4, atol=1e-6)
    assert one.metrics[-1]["train_loss"] == pytest.approx(other.metrics[-1]["train_loss"], rel=1e-5)


def drift(folder, algorithm):
    """Return KL(before, after) of what a model says of unseen classes, when one client trains it with two classes."""
    said = {**BASE, "population": [{"name": "phone", "count": 1}]}
    server = {**BASE["server"], "rounds": 1, "local": {"epochs": 5, "batch": 9}, "algorithm": algorithm}
    one = Scenario.model_validate({**said, "server": server})
    found = fedactors.run(one, folder, fleet="local", report=False)
    prepared = prepare(one)
    data = load(prepared)[1]
    mine = data.split.of(0)
    unseen = [label for label in range(10) if label not in data.y[mine]]
    assert len(unseen) == 8
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    before, after = (
        logs_of(net, flat, data.x[mine], unseen) for flat in (initial(prepared.model, 5), found.state["x"])
    )
    return float((before.exp() * (before - after)).sum(1).mean())


@torch.no_grad()
def logs_of(net, flat, x, classes):
    nn.utils.vector_to_parameters(torch.from_numpy(flat).clone(), net.parameters())
    return net(torch.from_numpy(x))[:, classes].log_softmax(1)


def test_a_client_keeps_what_is_said_of_the_classes_that_it_lacks(tmp_path):
    kept = drift(tmp_path / "kept", {"name": "fedntd", "beta": 5.0})
    assert 0 <= kept < 0.5 * drift(tmp_path / "lost", "fedavg")


@pytest.mark.parametrize(
    ("loss", "shape"),
    [("cross_entropy", (20, 90)), ("cross_entropy", (2,)), ("bce", (1,)), ("mse", (4,)), ("multi_label", (5,))],
)
def test_other_labels_than_one_of_several_classes_are_refused(loss, shape):
    message = (
        r'"fedntd" compares .* classes that are not the label; found outputs of shape .*\(accepted: one label for each'
    )
    with pytest.raises(ScenarioError, match=message):
        FedNTD().check(TaskSetting(loss=loss, output_shape=shape))
    FedNTD().check(TaskSetting(loss="nll", output_shape=(3,)))


def test_a_scenario_with_sequences_is_refused():
    said = {
        **BASE,
        "task": {"dataset": {"name": "languages"}, "model": {"name": "char_gru", "units": 8}, "partition": "natural"},
    }
    with pytest.raises(ScenarioError, match="fedntd"):
        prepare(Scenario.model_validate({**said, "server": {**BASE["server"], "algorithm": "fedntd"}}))


def test_a_step_takes_a_third_longer():
    assert FedNTD().effort(TaskSetting()) == pytest.approx(4 / 3)
    plain, longer = (prepare(scenario(algorithm=name)).population.per_sample for name in ("fedavg", "fedntd"))
    np.testing.assert_allclose(longer, plain * 4 / 3, rtol=1e-6)
