"""Parts of the model that stay at the clients, and Ditto's models of their own: laws, and clients worked by hand."""

import numpy as np
import pytest
import torch
import yaml
from safetensors.numpy import load_file

from fedactors import Scenario, run
from fedactors.cli.main import main
from fedactors.data.partitions.assignment import contiguous
from fedactors.learning.algorithm import TaskSetting
from fedactors.learning.personal_parts import PERSONAL
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, TrainingData, TrainingTask
from fedactors.models.layers import dense, stack
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import resume
from fedactors.simulation.verify import verify
from fedactors.workload import workload

BASE = {
    "name": "personal",
    "seed": 3,
    "task": {
        "dataset": "digits",
        "model": {"name": "mlp", "hidden": [8]},
        "partition": {"name": "classes", "classes": 2},
    },
    "population": [{"name": "devices", "count": 8, "network": {"down": "1 MB/s", "up": "1 MB/s"}}],
    "server": {"rounds": 4, "cohort": 4, "local": {"epochs": 1, "batch": 20}},
}
HEAD = "server.personal=['3.*']"  # of the mlp: flatten, dense, relu, dense


@pytest.fixture
def scenario(tmp_path):
    def made(*overrides):
        file = tmp_path / "personal.yaml"
        file.write_text(yaml.safe_dump(BASE))
        return Scenario.load(file, overrides)

    return made


def played(scenario, folder, **options):
    return run(scenario, folder, fleet="local", report=False, **options)


def kept_by(folder):
    """Return what each client keeps at the end of a run, from its checkpoint: by (client, name)."""
    files = sorted(folder.glob("checkpoint/round-*"))[-1].glob("clients-*.safetensors")
    return {name: value for file in files for name, value in load_file(file).items()}


def regression(algorithm, positions, workers=2):
    """Return a trainer of y = w x + b (squared loss against unit vectors) with one sample at each of two clients."""
    model = stack("line", (1,), dense(1), start="zeros", loss="squared")
    works = tuple(workload(1, 1, epochs=2, steps=None) for _ in range(workers))
    x = np.array([[1.0], [2.0]], np.float32)
    y = np.zeros(2, np.int64)
    task = TrainingTask(model, algorithm, 0, works, TaskSetting(clients=2), personal=np.array(positions, np.int64))
    return Trainer(task, TrainingData(x, y, contiguous(np.array([1, 1]))))


CHUNK = Chunk(0, (0, 1), (0, 0), (0, 0), (1, 1), (0.5, 0.5), 0.1)


def fedavg(**options):
    from fedactors.algorithms.fedavg import FedAvg

    return FedAvg(**options)


def gradient(w, b, x):
    """Return the gradient of the model's loss at sample x with target 1, by torch itself."""
    from fedactors.models.losses import mean_loss

    model = stack("line", (1,), dense(1), start="zeros", loss="squared")
    tensors = [torch.tensor([[w]], requires_grad=True), torch.tensor([b], requires_grad=True)]
    loss = mean_loss(model, tensors, torch.tensor([[x]]), torch.zeros(1, dtype=torch.int64), None, 0)
    return [float(found) for found in torch.autograd.grad(loss, tensors)]


def test_two_clients_by_hand():
    """y = w x + b, b stays at the clients, who have x = 1 and x = 2 with target 1; w = 0 was sent, eta_l = 0.1.

    The loss is a multiple k of (w x + b - 1)^2 / 2, with slope k (w x + b - 1) x for w and k (w x + b - 1) for b.
    Client 0 has kept b = 0.5: residual -0.5, so w -> 0.05 k, b -> 0.5 + 0.05 k. Client 1 comes for the first time:
    b = 0 as sent, residual -1: w -> 0.2 k, b -> 0.1 k. Sent are the changes of w alone: 0.5 (0.05 + 0.2) k = 0.125 k.
    """
    k = -gradient(0.0, 0.0, 1.0)[1]
    trainer = regression(fedavg(), [1])
    learned = trainer.learn(CHUNK, [{"x": np.zeros(2, np.float32)}], [{PERSONAL: np.array([0.5], np.float32)}, None])
    assert learned.sums["delta"] == pytest.approx([0.125 * k, 0.0])
    assert learned.sums["delta"][1] == 0.0
    assert [one[PERSONAL].tolist() for one in learned.kept] == [
        [pytest.approx(0.5 + 0.05 * k)],
        [pytest.approx(0.1 * k)],
    ]


def test_dittos_two_clients_by_hand():
    """Two models: w = b = 0 was sent, lambda = 2, eta_l = 0.1. Client 0 keeps v = (0.5, 0): 2 (v - x) = (1, 0).

    Its slope at v for x = 1 is k (0.5 - 1) = -0.5 k in both: v -> (0.5 + 0.05 k - 0.1, 0.05 k). Client 1 starts v from
    x, where nothing pulls: like its update, (0.2 k, 0.1 k). What they send is FedAvg's: 0.5 (0.1 + 0.2) k and 0.1 k.
    """
    from fedactors.algorithms.ditto import Ditto

    k = -gradient(0.0, 0.0, 1.0)[1]
    trainer = regression(Ditto(pull=2.0), [])
    kept = [{"own": np.array([0.5, 0.0], np.float32)}, None]
    learned = trainer.learn(CHUNK, [{"x": np.zeros(2, np.float32)}], kept)
    assert learned.sums["delta"] == pytest.approx([0.15 * k, 0.1 * k])
    assert learned.kept[0]["own"] == pytest.approx([0.4 + 0.05 * k, 0.05 * k])
    assert learned.kept[1]["own"] == pytest.approx([0.2 * k, 0.1 * k])


def test_a_second_step_of_ditto_is_pulled_from_where_it_is():
    """Two steps by hand, v_{s+1} = v_s - eta (g(v_s) + lambda (v_s - x)), against the correction that stands for it."""
    from fedactors.algorithms.ditto import Ditto

    v, x = np.array([0.5, -0.25]), np.array([0.25, 0.125])
    expected = v.copy()
    for _ in range(2):
        expected = expected - 0.1 * (np.array(gradient(*expected.tolist(), 2.0)) + 2.0 * (expected - x))
    chunk = CHUNK._replace(clients=(1,), model_indices=(0,), base_versions=(0,), steps=(2,), weights=(1.0,))
    kept = [{"own": v.astype(np.float32)}]
    learned = regression(Ditto(pull=2.0), []).learn(chunk, [{"x": x.astype(np.float32)}], kept)
    assert learned.kept[0]["own"] == pytest.approx(expected, rel=1e-5)


def test_ditto_pulls_a_personal_part_towards_the_clients_own():
    """By hand: p and v are kept, x is sent; at P v is pulled towards p, and never towards what the server has there."""
    from fedactors.algorithms.ditto import Ditto

    v, x, p = np.array([0.5, -0.25]), np.array([0.25, 0.125]), 0.75
    expected = v - 0.1 * (np.array(gradient(*v.tolist(), 2.0)) + 2.0 * (v - [x[0], p]))
    kept = [{"own": v.astype(np.float32), PERSONAL: np.array([p], np.float32)}]
    chunk = CHUNK._replace(clients=(1,), model_indices=(0,), base_versions=(0,), steps=(1,), weights=(1.0,))
    learned = regression(Ditto(pull=2.0), [1]).learn(chunk, [{"x": x.astype(np.float32)}], kept)
    assert learned.kept[0]["own"] == pytest.approx(expected, rel=1e-5)


def test_with_nothing_personal_it_is_fedavg_to_the_bit(scenario, tmp_path):
    plain, none = scenario(), scenario("server.personal=[]")
    one, other = played(plain, tmp_path / "one"), played(none, tmp_path / "other")
    assert one.summary["digests"] == other.summary["digests"]


@pytest.mark.parametrize("algorithm", ["fedavg", "fedprox", "scaffold", "feddyn", "fedadam", "fedavgm"])
def test_with_all_personal_the_server_does_not_move(scenario, tmp_path, algorithm):
    chosen = scenario("server.personal=['*']", f"server.algorithm={algorithm}")
    found = played(chosen, tmp_path / "run", stop_after=2)
    start = played(chosen, tmp_path / "start", stop_after=0)
    assert np.array_equal(found.state["x"], start.state["x"])
    trained = [value for name, value in kept_by(tmp_path / "run").items() if name.endswith(PERSONAL)]
    assert trained
    assert all(not np.array_equal(one, start.state["x"]) for one in trained)


def test_fednova_of_equal_steps_is_fedavg_of_what_is_shared(scenario, tmp_path):
    """Its a_i are known, so a part may stay at the clients: places that do not travel have no share in the sum."""
    equal = (HEAD, "server.local={steps: 6, batch: 20}", "server.participation=uniform")
    one, other = (
        played(scenario(*equal, f"server.algorithm={name}"), tmp_path / name) for name in ("fednova", "fedavg")
    )
    np.testing.assert_allclose(one.state["x"], other.state["x"], atol=1e-5)
    mine, others = (kept_by(tmp_path / name) for name in ("fednova", "fedavg"))
    assert mine.keys() == others.keys()
    assert all(value == pytest.approx(others[name], abs=1e-4) for name, value in mine.items())


def test_all_personal_is_training_alone(scenario, tmp_path):
    """One client with everything its own does what FedAvg with one client does: its model is never averaged."""
    alone = ("population.devices.count=1", "server.cohort=1", "task.partition=iid")
    own = played(scenario(*alone, "server.personal=['*']"), tmp_path / "own")
    shared = played(scenario(*alone), tmp_path / "shared")
    assert own.metrics[-1]["train_loss"] == pytest.approx(shared.metrics[-1]["train_loss"], rel=1e-5)
    assert kept_by(tmp_path / "own")[f"0/{PERSONAL}"] == pytest.approx(shared.state["x"], abs=1e-5)


def test_only_what_is_shared_travels(scenario):
    """The mlp has 64 * 8 + 8 values in its body, and 8 * 10 + 10 in its head."""
    whole, part = prepare(scenario()), prepare(scenario(HEAD))
    assert whole.wire["down"] == whole.wire["up"] == 4 * 610
    assert part.wire["down"] == part.wire["up"] == 4 * 520
    assert part.wire["once"] == 0
    assert next(part.clock()).closed < next(whole.clock()).closed
    doubled = prepare(scenario(HEAD, "server.algorithm=scaffold"))
    assert doubled.wire["up"] == 8 * 520


def test_the_head_stays_and_the_body_moves(scenario, tmp_path):
    found = played(scenario(HEAD), tmp_path / "run")
    start = played(scenario(HEAD), tmp_path / "start", stop_after=0)
    moved = found.state["x"] != start.state["x"]
    assert moved[:520].any()
    assert not moved[520:].any()
    heads = [value for name, value in kept_by(tmp_path / "run").items() if name.endswith(PERSONAL)]
    assert len({head.tobytes() for head in heads}) == len(heads) > 1
    assert {head.shape for head in heads} == {(90,)}


@pytest.mark.parametrize("change", [HEAD, "server.algorithm={name: ditto, pull: 0.5}"])
def test_what_clients_have_of_their_own_survives_resume(scenario, tmp_path, change):
    whole = played(scenario(change), tmp_path / "whole")
    played(scenario(change), tmp_path / "run", stop_after=2)
    again = resume(tmp_path / "run", fleet="local", report=False)
    assert again.summary["digests"] == whole.summary["digests"]
    one, other = kept_by(tmp_path / "whole"), kept_by(tmp_path / "run")
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold", "ditto"])
def test_the_same_bits_on_any_number_of_hosts(scenario, algorithm):
    chosen = scenario(HEAD, f"server.algorithm={algorithm}")
    assert verify(chosen, [("local", 1), ("ray", 1), ("ray", 2), ("ray", 3)])["equal"]


def test_departures_leave_the_others_their_parts(scenario, tmp_path):
    """Eight devices, of which two leave in the second round: their parts are dropped, all others stay."""
    groups = "population=[{name: staying, count: 6}, {name: leaving, count: 2, depart: SECONDSs}]"
    alike = scenario(HEAD, "server.cohort=all", groups.replace("SECONDS", "9999"))
    second = next(prepare(alike).clock()).closed / 1e9 + 0.05
    chosen = scenario(HEAD, "server.cohort=all", groups.replace("SECONDS", f"{second:.3f}"))
    for rounds, clients in ((1, 8), (4, 6)):
        played(chosen, tmp_path / str(rounds), stop_after=rounds)
        assert set(kept_by(tmp_path / str(rounds))) == {f"{client}/{PERSONAL}" for client in range(clients)}


NETS = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(64, 6), nn.BatchNorm1d(6), nn.Linear(6, 10)
    def forward(self, x):
        return self.head(self.norm(self.body(x.flatten(1))).relu())
"""


def module_names(scenario, tmp_path, *overrides):
    (tmp_path / "nets.py").write_text(NETS)
    return scenario("task.model={name: torch, factory: 'nets.py:Net'}", "task.partition=iid", *overrides)


def test_fedbn_is_personal_normalisation(scenario, tmp_path):
    """Names are the module's own; statistics match the pattern like weights, and stay as well."""
    chosen = module_names(scenario, tmp_path, "server.personal=['norm.*']")
    prepared = prepare(chosen)
    body = 64 * 6 + 6
    expected = [*range(body, body + 12), *range(body + 12 + 70, body + 12 + 70 + 12)]
    assert prepared.personal.tolist() == expected
    found, start = played(chosen, tmp_path / "run"), played(chosen, tmp_path / "start", stop_after=0)
    moved = np.flatnonzero(found.state["x"] != start.state["x"])
    assert len(moved)
    assert not set(moved.tolist()) & set(expected)


def test_local_buffers_are_the_clients_own(scenario, tmp_path):
    chosen = module_names(scenario, tmp_path, "task.model.buffers=local")
    prepared = prepare(chosen)
    assert prepared.personal.tolist() == [*range(prepared.model.parameters - 12, prepared.model.parameters)]
    found = played(chosen, tmp_path / "run")
    assert found.state["x"][-12:].tolist() == [0.0] * 6 + [1.0] * 6
    own = [value for name, value in kept_by(tmp_path / "run").items() if name.endswith(PERSONAL)]
    assert own
    assert all(not np.array_equal(one, found.state["x"][-12:]) for one in own)
    assert prepared.wire["up"] == 4 * (prepared.model.parameters - 12)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["server.personal=['head.*']"], 'server.personal.0: no tensor matches "head.*"'),
        ([HEAD, "server.algorithm=fsl", "server.data={name: iid, samples: 60}"], "its server trains the whole model"),
        ([HEAD, "server.algorithm=fed-ams"], "it brings an optimiser"),
        (
            [HEAD, "server.algorithm=fednova", "server.alternate={steps: 1}"],
            "divided by what all steps of a trip weigh",
        ),
        ([HEAD, "server.dissimilarity_every=1"], "server.data"),
        ([HEAD, "server.membership={name: vanilla, departures: auto}"], "decides by losses of the server's model"),
        (["server.personal=3"], "server.personal: "),
        (["server.algorithm=ditto", "server.local.optimizer=adam"], "own models are trained by SGD"),
    ],
)
def test_what_has_no_meaning_is_refused(scenario, tmp_path, capsys, changes, said):
    scenario()
    words = [word for change in changes for word in ("--set", change)]
    assert main(["check", str(tmp_path / "personal.yaml"), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_personal_part_helps_where_labels_differ(scenario, tmp_path):
    """Two labels at each client: a head of one's own has to tell two apart, not ten."""
    longer = ("server.rounds=30", "server.schedule.lr=0.1")
    shared = played(scenario(*longer), tmp_path / "shared").metrics[-1]["train_loss"]
    own = played(scenario(HEAD, *longer), tmp_path / "own").metrics[-1]["train_loss"]
    assert own < shared
