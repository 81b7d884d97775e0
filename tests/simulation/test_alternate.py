"""FedRep: the first steps of a trip move the personal part alone, all others the shared part alone."""

import json

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from fedactors import Scenario, run
from fedactors.cli.main import main
from fedactors.clip import Clip
from fedactors.engines.client_batch import Phases
from fedactors.engines.descent import Descent
from fedactors.learning.own_models import OWN
from fedactors.models.network import initial, views
from fedactors.optim.client_optimizers import SGD, AMSGrad, ClientAdam, ClientAdamW, Lamb
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load, resume
from fedactors.simulation.verify import verify

NETS = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Tanh()), nn.Linear(8, 10)
    def forward(self, x):
        return self.head(self.body(x))
"""
BASE = {
    "name": "rep",
    "seed": 3,
    "task": {"dataset": "digits", "model": {"name": "torch", "factory": "nets.py:Net"}, "partition": "iid"},
    "population": [{"name": "phones", "count": 1}],
    "server": {
        "rounds": 2,
        "personal": ["head.*"],
        "alternate": {"steps": 3},
        "local": {"steps": 5, "batch": 5000},
        "schedule": {"name": "constant", "lr": 0.5},
    },
}
MANY = ("population.phones.count=6", "server.local.batch=40", "task.partition={name: classes, classes: 2}")


@pytest.fixture
def scenario(tmp_path):
    def made(*overrides):
        (tmp_path / "nets.py").write_text(NETS)
        (tmp_path / "rep.yaml").write_text(yaml.safe_dump(BASE))
        return Scenario.load(tmp_path / "rep.yaml", overrides)

    return made


def played(scenario, folder, **options):
    return run(scenario, folder, fleet="local", report=False, **options)


MOMENTUM = {"momentum": 0.9, "weight_decay": 0.01}


@pytest.mark.parametrize(
    ("ours", "theirs", "norm"),
    [
        ({"name": "sgd"}, {}, None),
        ({"name": "sgd", **MOMENTUM}, MOMENTUM, None),
        ({"name": "sgd", "momentum": 0.9, "dampening": 0.5}, {"momentum": 0.9, "dampening": 0.5}, None),
        ({"name": "sgd"}, {}, 0.05),
        ({"name": "adam"}, {}, None),
    ],
)
@pytest.mark.parametrize("engine", ["sequential", "vmap"])
def test_a_client_alone_learns_what_torch_learns_part_by_part(scenario, tmp_path, ours, theirs, norm, engine):
    """Two trips of three steps of the head, then two of the body; whole batches, so that the order does not count."""
    made, lr = (torch.optim.Adam, 0.01) if ours["name"] == "adam" else (torch.optim.SGD, 0.5)
    local = {**BASE["server"]["local"], "optimizer": ours, "clip": norm and {"norm": norm}}
    chosen = scenario(f"server.local={json.dumps(local)}", f"server.schedule.lr={lr}", f"task.engine={engine}")
    found = played(chosen, tmp_path / "run")
    prepared = prepare(chosen)
    task, data, _, _ = load(prepared)
    net = nn.Sequential(nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Tanh()), nn.Linear(8, 10))
    start = views(prepared.model, torch.from_numpy(initial(prepared.model, 3)))
    with torch.no_grad():
        for mine, value in zip(net.parameters(), start, strict=True):
            mine.copy_(value)
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    for _ in range(2):
        for part, steps in ((net[1], 3), (net[0], 2)):
            optimizer = made(part.parameters(), lr=lr, **theirs)
            for _ in range(steps):
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(x), y).backward()
                nn.utils.clip_grad_norm_(part.parameters(), norm or torch.inf)
                optimizer.step()
    shared = torch.cat([value.detach().flatten() for value in net[0].parameters()]).numpy()
    np.testing.assert_allclose(found.state["x"][: len(shared)], shared, atol=1e-5)
    head = initial(prepared.model, 3)[len(shared) :]
    assert np.array_equal(found.state["x"][len(shared) :], head), "the server's head is the initial one"
    assert OWN not in task.algorithm.keeps


@pytest.mark.parametrize(
    "optimizer",
    [ClientAdam(weight_decay=0.1), ClientAdamW(), AMSGrad(), Lamb(layer="module"), SGD(momentum=0.9, dampening=0.5)],
    ids=lambda one: one.name,
)
def test_each_part_moves_as_a_model_of_its_own(optimizer):
    """Two clients, with one and three first steps; the parts share a layer, whose norms LAMB would take as one."""
    draws = torch.Generator().manual_seed(1)
    start, correction = torch.randn(2, 2, 5, generator=draws)
    grads = torch.randn(6, 2, 5, generator=draws)
    personal = torch.tensor([True, False, True, False, False])

    def walk(x, along, phases=None):
        state = {name: torch.zeros_like(x) for name in optimizer.vectors}
        given = {"lr": 0.1, "correction": along, "prox": 0.5, "clip": Clip(norm=1.0), "phases": phases}
        return Descent(optimizer, x, state, **given)

    whole = walk(start, correction, Phases(personal, torch.tensor([[1], [3]])))
    for number, grad in enumerate(grads, 1):
        whole.step(grad, number)
    for row, first in enumerate((1, 3)):
        for part, chosen in ((personal, grads[:first]), (~personal, grads[first:])):
            alone = walk(start[row, part], correction[row, part])
            for number, grad in enumerate(chosen, 1):
                alone.step(grad[row, part], number)
            torch.testing.assert_close(whole.y[row, part], alone.y)
            for name, vector in alone.state.items():
                torch.testing.assert_close(whole.state[name][row, part], vector)


def test_passes_are_counted_client_by_client(scenario):
    chosen = scenario(*MANY, "server.alternate={epochs: 1}", "server.local={epochs: 3, batch: 40}")
    prepared = prepare(chosen)
    assert list(prepared.personal_steps) == [work.pass_steps for work in prepared.workloads]
    assert all(
        work.wanted == 3 * steps for work, steps in zip(prepared.workloads, prepared.personal_steps, strict=True)
    )


def test_a_trip_cut_short_in_its_first_phase_sends_nothing(scenario, tmp_path):
    overrides = (*MANY, "population.phones.compute={per_sample: 25ms}", "server.deadline=2.5s")
    found = played(scenario(*overrides), tmp_path / "run")  # two steps of one second each
    assert found.summary["outcomes"]["partial"] == 12
    assert np.array_equal(found.state["x"], initial(prepare(scenario(*overrides)).model, 3))


def test_engines_agree_and_a_stopped_run_goes_on_with_the_same_bits(scenario, tmp_path):
    whole = played(scenario(*MANY), tmp_path / "whole")
    other = played(scenario(*MANY, "task.engine=sequential"), tmp_path / "other")
    np.testing.assert_allclose(whole.state["x"], other.state["x"], atol=1e-5)
    played(scenario(*MANY), tmp_path / "cut", stop_after=1)
    assert resume(tmp_path / "cut", fleet="local", report=False).summary["digests"] == whole.summary["digests"]
    plain = played(scenario(*MANY, "server.alternate=null"), tmp_path / "plain")
    assert not np.allclose(whole.state["x"], plain.state["x"], atol=1e-3)


@pytest.mark.slow
def test_bits_are_the_same_on_ray(scenario):
    assert verify(scenario(*MANY), [("local", 1), ("ray", 2)])["equal"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("server.alternate={}", "give either epochs or steps"),
        ("server.alternate={steps: 5}", "no client has steps left for the shared part"),
        ("server.personal=[]", "nothing stays at the clients"),
        ("server.algorithm=scaffold", '"scaffold" wants each step to move the whole model'),
    ],
)
def test_what_has_no_meaning_is_refused(scenario, tmp_path, capsys, change, said):
    scenario()
    assert main(["check", str(tmp_path / "rep.yaml"), "--set", change]) == 2
    told = capsys.readouterr().err
    assert said in told, json.dumps(told)
    assert len(told.strip().splitlines()) == 1
