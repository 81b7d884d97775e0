"""q-FedAvg: by hand, by the authors' arithmetic, whole rounds by torch; and the losses that algorithms are given."""

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import fedactors
from fedactors import Scenario
from fedactors.algorithms.fedavg import FedAvg
from fedactors.algorithms.qfedavg import QFedAvg
from fedactors.data.batches import bounds, sequence
from fedactors.learning.algorithm import ClientResult, TaskSetting
from fedactors.learning.summing import mean_losses
from fedactors.models.network import initial
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load
from tests.algorithms.harness import Federation, close, problem, quadratic, vector

BASE = {
    "name": "fair",
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
        "algorithm": {"name": "qfedavg", "q": 2.0},
        "local": {"epochs": 2, "batch": 9},
        "schedule": {"name": "constant", "lr": 0.1},
    },
}


def scenario(task=None, **server):
    return Scenario.model_validate(
        {**BASE, "task": {**BASE["task"], **(task or {})}, "server": {**BASE["server"], **server}}
    )


def half_square(y):
    return quadratic(torch.eye(1, dtype=torch.float64), vector(y)), lambda x: float((x - y).square().sum()) / 2


def test_a_round_by_hand():
    """f = (y - 2)^2 / 2 and (y + 1)^2 / 2, x = 0, one step of rate 1/2, q = 1, so that L = 2.

    F = 2 and 1/2, x - y = -1 and 1/2. Delta = 2 * 2 * -1 = -4 and 1/2 * 2 * 1/2 = 1/2; h = 4 + 2 * 2 = 8 and 1 + 1 = 2.
    The model moves by 3.5 / 10, and with weights 1/4 and 3/4 by (1 - 3/8) / (2 + 6/4).
    """
    (one, f), (other, g) = half_square(2.0), half_square(-1.0)
    for weights, moved in ((None, 0.35), ([0.25, 0.75], 0.625 / 3.5)):
        fed = Federation(QFedAvg(q=1.0), vector(0.0), [one, other], lr=0.5, losses=[f, g])
        close(fed.round(weights=weights), vector(moved), rtol=1e-8)


def test_power_zero_is_fedavg():
    gradients = problem(3)[0]
    x = vector(1.0, -2.0, 0.5, 3.0)
    one, other = (Federation(algorithm, x, gradients, steps=3) for algorithm in (QFedAvg(q=0.0), FedAvg()))
    for _ in range(3):
        close(one.round([0, 2], [3, 1], [0.3, 0.7]), other.round([0, 2], [3, 1], [0.3, 0.7]))


def authors(x, models, losses, q, rate):
    """Return the next model by the arithmetic of the authors' released server, which adds clients unweighted."""
    pushes = [(x - y) / rate for y in models]
    powers = [np.float_power(loss + 1e-10, q) for loss in losses]
    slopes = [np.float_power(loss + 1e-10, q - 1) for loss in losses]
    sizes = [
        q * slope * np.square(push).sum() + power / rate
        for slope, power, push in zip(slopes, powers, pushes, strict=True)
    ]
    return x - sum(power * push for power, push in zip(powers, pushes, strict=True)) / sum(sizes)


@pytest.mark.parametrize("q", [0.001, 0.5, 1.0, 5.0])
def test_a_round_is_that_of_the_authors(q):
    gradients, matrices, targets = problem(4, seed=3)
    x = vector(1.0, -2.0, 0.5, 3.0)

    def loss(client):
        return lambda y: float((y - targets[client]) @ matrices[client] @ (y - targets[client])) / 2

    losses = [loss(client) for client in range(4)]
    fed = Federation(QFedAvg(q=q), x, gradients, steps=5, lr=0.05, losses=losses)
    models = [(x + fed.trip(client, 5, {"x": x}).delta).numpy() for client in range(4)]
    expected = authors(x.numpy(), models, [one(x) for one in losses], q, 0.05)
    close(fed.round(), torch.from_numpy(expected), rtol=1e-9)


def test_a_given_constant_takes_the_place_of_the_rate():
    """As by hand, with L = 4: Delta = -8 and 1, h = 16 + 8 and 1 * 4 + 2; a longer bound, a shorter step."""
    (one, f), (other, g) = half_square(2.0), half_square(-1.0)
    fed = Federation(QFedAvg(q=1.0, lipschitz=4.0), vector(0.0), [one, other], lr=0.5, losses=[f, g])
    close(fed.round(), vector(7 / 30), rtol=1e-8)


def test_a_model_without_any_loss_stays():
    """0.001^15 is 0 in float32; a rate of 0 has no constant."""
    row = torch.ones(2, 3)
    trip = ClientResult(row, row, {}, torch.ones(2, 1), 0.1, start_loss=torch.full((2, 1), 1e-4))
    sums = {name: rows.sum(0) for name, rows in QFedAvg(q=15.0).upload(trip).items()}
    assert torch.equal(QFedAvg(q=15.0).aggregate({"x": row[0]}, sums, None, None)["x"], row[0])
    assert QFedAvg().upload(trip._replace(lr=0.0, delta=0 * row))["size"].isfinite().all()


def test_statistics_of_a_model_are_no_part_of_the_norm():
    """The last values of the change are those of buffers; they are averaged apart."""
    delta = torch.tensor([[3.0, 4.0, 1e6]])
    trip = ClientResult(0 * delta, delta, {}, torch.ones(1, 1), 1.0, start_loss=torch.ones(1, 1))
    assert QFedAvg().upload(trip._replace(buffers=1))["size"].item() == pytest.approx(1 + 25)


def net_of(x):
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    nn.utils.vector_to_parameters(torch.from_numpy(x).clone(), net.parameters())
    return net


def torch_round(x, data, works, version, q):
    """Return the next model by plain torch, client after client, and the authors' arithmetic, weighted by samples."""
    models, losses = [], []
    for client, work in enumerate(works):
        mine = data.split.of(client)
        net = net_of(x)
        with torch.no_grad():
            losses.append(
                functional.cross_entropy(net(torch.from_numpy(data.x[mine])), torch.from_numpy(data.y[mine])).item()
            )
        optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
        order = torch.from_numpy(sequence(5, client, version, mine, work, work.wanted))
        for first, last in bounds(work, work.wanted):
            samples, labels = (torch.from_numpy(part)[order[first:last]] for part in (data.x, data.y))
            optimiser.zero_grad()
            functional.cross_entropy(net(samples), labels).backward()
            optimiser.step()
        models.append(nn.utils.parameters_to_vector(net.parameters()).detach().numpy().astype(float))
    return authors(x.astype(float), models, losses, q, 0.1).astype(np.float32)


@pytest.mark.parametrize("engine", [None, "sequential", "vmap"])
def test_two_rounds_are_those_of_a_plain_torch_loop(tmp_path, engine):
    """Real digits, four clients of two classes and 40 samples each, so that equal weights are weights by samples."""
    one = scenario(task={"engine": engine})
    found = fedactors.run(one, tmp_path / "run", fleet="local", report=False)
    prepared = prepare(one)
    data = load(prepared)[1]
    x = initial(prepared.model, 5)
    for version in range(2):
        x = torch_round(x, data, prepared.workloads, version, 2.0)
    np.testing.assert_allclose(found.state["x"], x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("q", [0.0, 1.0, 3.0])
def test_it_rests_where_the_sum_of_powers_is_least(q):
    """f = (y - 2)^2 / 2 and 3 (y + 1)^2 / 2: sum f^(q+1) is least where (2 - y) = 3^((q+1)/(2q+1)) (y + 1).

    The mean is least at -1/4; with the power, the higher loss, f(y), falls.
    """
    gradients = [quadratic(vector(c)[:, None], vector(y)) for c, y in ((1.0, 2.0), (3.0, -1.0))]
    losses = [lambda x: float((x - 2) ** 2) / 2, lambda x: float((x + 1) ** 2) * 1.5]
    fed = Federation(QFedAvg(q=q), vector(0.0), gradients, lr=1 / 3, losses=losses)
    for _ in range(200):
        fed.round()
    ratio = 3 ** ((q + 1) / (2 * q + 1))
    close(fed.x, vector((2 - ratio) / (1 + ratio)), rtol=1e-6)


def test_the_pass_over_all_samples_takes_its_time():
    """40 samples, a third of the time of a step each, beside two passes of 40: 1/6 more; none for q = 0."""
    assert QFedAvg(q=0.0).effort(TaskSetting(4, samples=160, batch=9, steps=10)) == 1.0
    assert QFedAvg().effort(TaskSetting(4, samples=160, batch=8, steps=10)) == pytest.approx(1 + 1 / 6)
    assert QFedAvg().effort(TaskSetting(4, samples=160, batch=1000, steps=1)) == pytest.approx(4 / 3), "whole batches"
    assert QFedAvg().effort(TaskSetting()) == 1.0


def test_the_mean_loss_of_a_trip_does_not_depend_on_longer_trips_beside_it():
    losses = torch.rand(3, 40, generator=torch.Generator().manual_seed(1))
    steps = torch.tensor([[17.0], [40.0], [0.0]])
    losses[0, 17:] = 0
    losses[2] = 0
    found = mean_losses(losses, steps)
    assert mean_losses(losses[:, :0], 0 * steps).tolist() == [[0.0]] * 3
    assert torch.equal(mean_losses(losses[:1, :17], steps[:1]), found[:1])
    torch.testing.assert_close(found, torch.stack([losses[0].sum() / 17, losses[1].mean(), losses[2, 0]])[:, None])


OWN = """
from typing import ClassVar, Literal

from fedactors.algorithms.fedavg import Averaging


class Told(Averaging):
    name: Literal["told"] = "told"
    data_independent: ClassVar[tuple[str, ...]] = ("n", "mean", "first")

    @property
    def wants_start_loss(self):
        return True

    def start(self, x):
        return {"x": x, "found": x.new_zeros(3)}

    def upload(self, trip):
        return {"delta": trip.delta, "n": trip.samples, "mean": trip.loss, "first": trip.start_loss}

    def aggregate(self, state, sums, round, central):
        import torch

        found = torch.cat([sums["n"], sums["mean"], sums["first"]])
        return {**super().aggregate(state, sums, round, central), "found": found}
"""


def test_an_algorithm_of_ones_own_is_told_losses_and_samples(tmp_path):
    """Against the run's own books: with equal weights, what is summed is a mean over the four clients."""
    plugin = tmp_path / "told_losses.py"
    plugin.write_text(OWN)
    path = tmp_path / "told.json"
    server = {**BASE["server"], "rounds": 1, "algorithm": "told"}
    path.write_text(json.dumps({**BASE, "plugins": [plugin.name], "server": server}))
    found = fedactors.run(Scenario.load(path), tmp_path / "run", fleet="local", report=False)
    n, mean, first = found.state["found"]
    assert n == pytest.approx(40)
    assert mean == pytest.approx(found.metrics[-1]["train_loss"], rel=1e-5)
    prepared = prepare(Scenario.load(path))
    data, x = load(prepared)[1], initial(prepared.model, 5)
    with torch.no_grad():
        losses = [
            functional.cross_entropy(net_of(x)(torch.from_numpy(mine.x)), torch.from_numpy(mine.y)).item()
            for mine in map(data.of, range(4))
        ]
    assert first == pytest.approx(np.mean(losses), rel=1e-5)


def test_losses_are_those_of_models_that_clients_begin_with(tmp_path):
    """With heads that stay at the clients, F_i of a second trip is that of the client's own head."""
    server = {"personal": ["3.*"], "algorithm": "told", "rounds": 2, "local": {"steps": 40, "batch": 40}}
    plugin = tmp_path / "told_at_heads.py"
    plugin.write_text(OWN)
    said = {**BASE, "plugins": [str(plugin)], "server": {**BASE["server"], **server}}
    found = fedactors.run(Scenario.load(said), tmp_path / "run", fleet="local", report=False)
    assert found.state["found"][2] < 0.8 * np.log(10), "the server's own head has learned nothing"
