"""Attackers send what their formula says, learn from the labels that it says, and change nothing else."""

import numpy as np
import pytest
import torch
import yaml

import fedactors
from fedactors import Scenario, registry
from fedactors.attacks.base import Attackers
from fedactors.attacks.label_flip import LabelFlip
from fedactors.attacks.update_attacks import Boost, RandomUpdates, SignFlip
from fedactors.cli.main import main
from fedactors.data.partitions.assignment import Split
from fedactors.learning.training_task import TrainingData
from fedactors.simulation.loaded_data import with_wrong_labels
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load
from fedactors.streams import Purpose
from fedactors.transforms.draws import SenderDraws

PHONES = {"compute": {"per_sample": "10ms"}}
BASE = {
    "name": "attacked",
    "seed": 5,
    "task": {
        "dataset": "digits",
        "model": {"name": "mlp", "hidden": [16]},
        "partition": {"name": "iid", "samples": 40},
    },
    "server": {
        "rounds": 1,
        "cohort": 4,
        "participation": "uniform",
        "local": {"epochs": 1, "batch": 8},
        "schedule": {"name": "constant", "lr": 0.1},
    },
}


def scenario(attack, honest=3, task=None, **server):
    groups = [{"name": "honest", "count": honest, **PHONES}, {"name": "liars", "count": 1, "attack": attack, **PHONES}]
    return Scenario.model_validate(
        {**BASE, "population": groups, "task": {**BASE["task"], **(task or {})}, "server": {**BASE["server"], **server}}
    )


def model(tmp_path, name, attack, **options):
    return fedactors.run(scenario(attack, **options), tmp_path / name, fleet="local").state["x"]


def test_what_is_sent_is_the_formula():
    draws = SenderDraws(1, Purpose.ATTACK, [3, 4], [0, 0])
    rows = torch.tensor([[1.0, -2.0], [0.5, 4.0]])
    assert SignFlip(scale=3.0).updates(rows, draws).tolist() == [[-3.0, 6.0], [-1.5, -12.0]]
    assert Boost(factor=2.0).updates(rows, draws).tolist() == [[2.0, -4.0], [1.0, 8.0]]
    assert RandomUpdates(deviation=0.0).updates(rows, draws).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    many = RandomUpdates(deviation=2.0).updates(torch.zeros(2, 100_000), draws)
    assert many.std(1).tolist() == pytest.approx([2.0, 2.0], rel=0.02)
    assert abs(float((many[0] * many[1]).mean())) < 0.05, "attackers draw each their own"


@pytest.mark.parametrize("uplink", [[], [{"name": "quantize", "bits": 16, "scale": "max"}]])
def test_a_round_with_an_attacker_is_worked_out_by_hand(tmp_path, uplink):
    """Of four updates with weight 1/4, u is the sum of the honest three and v the attacker's: x + (u - 2 v) / 4."""
    attacks = {
        "none": None,
        "zero": {"name": "random", "deviation": 0.0},
        "flipped": {"name": "sign-flip", "scale": 2.0},
        "boosted": {"name": "boost", "factor": 3.0},
    }
    found = {name: model(tmp_path, name, attack, uplink=uplink) for name, attack in attacks.items()}
    honest, zero, flipped, boosted = found.values()
    v = honest - zero  # a quarter of the attacker's update
    exact = 1e-5 if uplink == [] else 2e-4
    np.testing.assert_allclose(flipped, zero - 2 * v, atol=exact)
    np.testing.assert_allclose(boosted, zero + 3 * v, atol=exact)
    assert np.abs(v).max() > 0.003


def test_plans_are_the_same_and_results_are_not(tmp_path):
    found = [
        fedactors.run(scenario(attack, rounds=3), tmp_path / str(number), fleet="local").summary["digests"]
        for number, attack in enumerate([None, "sign-flip", "random", "label-flip", "random"])
    ]
    assert len({digests["plans"] for digests in found}) == 1
    assert len({digests["model"] for digests in found}) == 4
    assert found[2] == found[4]


def test_a_median_of_updates_forgets_one_attacker(tmp_path):
    """The median of four is the mean of the middle two: as far as it goes, it is between honest updates."""
    attack = {"name": "random", "deviation": 100.0}
    runs = (
        fedactors.run(scenario(attack, rounds=20, aggregation=rule), tmp_path / rule, fleet="local")
        for rule in ("mean", "median")
    )
    mean, median = (run.summary["final"]["accuracy"] for run in runs)
    assert mean < 0.3 < 0.6 < median


def test_labels_are_flipped_for_attackers_alone():
    """Clients 0 and 2 hold the same samples; 2 attacks."""
    y = np.array([0, 1, 2, 3], np.int64)
    split = Split(np.array([0, 2, 4, 6]), np.array([0, 1, 2, 3, 1, 0]))
    samples = TrainingData(np.arange(4, dtype=np.float32)[:, None], y, split, weights=np.arange(4, dtype=np.float32))
    found = with_wrong_labels(samples, [Attackers(2, 3, LabelFlip())], 10)
    assert [found.of(client).y.tolist() for client in range(3)] == [[0, 1], [2, 3], [8, 9]]
    for client in range(3):
        assert np.array_equal(found.of(client).x, samples.of(client).x)
        assert np.array_equal(found.of(client).weights, samples.of(client).weights)
    one = with_wrong_labels(samples, [Attackers(0, 1, LabelFlip(label=1, to=7)), Attackers(2, 3, LabelFlip())], 10)
    assert [one.of(client).y.tolist() for client in range(3)] == [[0, 7], [2, 3], [8, 9]]


@pytest.mark.parametrize("algorithm", ["fedavg", "ds", "fsl"])
def test_a_run_learns_from_flipped_labels(algorithm):
    """The server's own samples, which data sharing sends to all, keep their labels."""
    data = {"data": {"name": "iid", "samples": 20}} if algorithm != "fedavg" else {}
    (_, honest, _, own), (_, flipped, _, as_before) = (
        load(prepare(scenario(attack, algorithm=algorithm, **data))) for attack in (None, "label-flip")
    )
    assert np.array_equal(own.y, as_before.y)
    assert all(np.array_equal(honest.of(client).y, flipped.of(client).y) for client in range(3))
    assert np.array_equal(flipped.of(3).y[:40], 9 - honest.of(3).y[:40])
    assert np.array_equal(flipped.of(3).y[40:], honest.of(3).y[40:])
    assert np.array_equal(flipped.of(3).x, honest.of(3).x)


def test_what_stays_at_a_client_is_not_altered(tmp_path):
    """A personal last layer never moves at the server, whatever is sent."""
    personal = ["3.*"]
    start, moved = (
        model(tmp_path, name, {"name": "random", "deviation": 5.0}, personal=personal, rounds=rounds)
        for name, rounds in (("a", 1), ("b", 2))
    )
    last = -(16 * 10 + 10)
    assert np.array_equal(start[last:], moved[last:])
    assert not np.array_equal(start[:last], moved[:last])


@pytest.mark.parametrize("name", ["ditto", "feddyn", "fednova", "fedprox", "fed-lamb", "scaffold", "mixed-et"])
def test_algorithms_run_with_attackers(name, tmp_path):
    data = {"data": {"name": "iid", "samples": 20}} if name.startswith("mixed") else {}
    options = {"algorithm": name, "rounds": 2, **data}
    attacked, honest = (model(tmp_path, str(attack), attack, **options) for attack in ("sign-flip", None))
    assert np.isfinite(attacked).all()
    assert not np.array_equal(attacked, honest)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["population.liars.attack=flip"], 'no attacks named "flip"'),
        (["population.liars.attack={name: label-flip, label: 3}"], "both of label and to"),
        (
            ["population.liars.attack={name: label-flip, label: 3, to: 10}"],
            "population.liars.attack: label-flip: found label 10 (accepted: 0 to 9)",
        ),
        (
            [
                "population.liars.attack=label-flip",
                "task.partition={name: classes, classes: 2, samples: 40, reallocate: true}",
            ],
            "samples are reallocated in every round, which label-flip cannot flip",
        ),
    ],
)
def test_one_message_for_a_wrong_attack(tmp_path, capsys, changes, message):
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(scenario(None).dump()))
    sets = [part for change in changes for part in ("--set", change)]
    assert main(["check", str(tmp_path / "s.yaml"), *sets]) == 2
    assert message in capsys.readouterr().err


def test_every_attack_says_its_name():
    for name in registry.names("attacks"):
        assert registry.lookup("attacks", name)().name == name
