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
from fedactors.errors import DivergedError
from fedactors.learning.training_task import TrainingData
from fedactors.models.network import initial
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
    found = with_wrong_labels(samples, [Attackers(2, 3, "liars", LabelFlip())], 10)
    assert [found.of(client).y.tolist() for client in range(3)] == [[0, 1], [2, 3], [8, 9]]
    for client in range(3):
        assert np.array_equal(found.of(client).x, samples.of(client).x)
        assert np.array_equal(found.of(client).weights, samples.of(client).weights)
    one = with_wrong_labels(
        samples, [Attackers(0, 1, "one", LabelFlip(label=1, to=7)), Attackers(2, 3, "liars", LabelFlip())], 10
    )
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


def test_a_random_update_is_the_same_attack_whatever_the_algorithm_makes_of_updates(tmp_path):
    """All do the same steps, so normalised averaging is averaging: also of noise in place of an update."""
    attack = {"name": "random", "deviation": 2.0}
    averaged, normalised = (model(tmp_path, name, attack, algorithm=name) for name in ("fedavg", "fednova"))
    np.testing.assert_allclose(averaged, normalised, atol=1e-5)


@pytest.mark.parametrize("clip", [None, {"norm": 1e9}], ids=["gradients are summed", "gradients are clipped"])
def test_the_control_variate_of_an_attacker_follows_from_what_it_sends(tmp_path, clip):
    """SCAFFOLD's first round, c = c_i = 0: c+ = (1/4) sum_i -v_i / (K eta_l), with v the update that is sent.

    An engine that sums gradients has the honest mean gradient at hand; where they are clipped it has not.
    """
    algorithm = {"name": "scaffold", "global_lr": 1.0}
    local = {"epochs": 1, "batch": 8} | ({} if clip is None else {"clip": clip})
    made = scenario({"name": "sign-flip", "scale": 2.0}, algorithm=algorithm, local=local)
    state = fedactors.run(made, tmp_path / "run", fleet="local").state
    start = initial(prepare(made).model, made.seed)
    np.testing.assert_allclose(state["c"], -(state["x"] - start) / (5 * 0.1), rtol=1e-3, atol=1e-5)


def test_the_sum_of_gradients_of_an_attacker_follows_from_what_it_sends(tmp_path):
    """2-way gradient transfer: gf+ is the mean of all steps' gradients, -(mean of updates) / (K eta), as gc = 0."""
    attack, data = {"name": "boost", "factor": 3.0}, {"name": "iid", "samples": 20}
    found = []
    for name, clip in (("summed", {}), ("clipped", {"clip": {"norm": 1e9}})):
        local = {"epochs": 1, "batch": 8, **clip}
        made = scenario(attack, algorithm={"name": "mixed-2w", "central_weight": 0.5}, data=data, local=local)
        found.append(fedactors.run(made, tmp_path / name, fleet="local").state["gf"])
    np.testing.assert_allclose(*found, rtol=1e-3, atol=1e-5)


def test_attackers_count_in_the_mean_of_their_group_alone(tmp_path):
    evaluation = {"clients": "all", "every": 1, "model": "own", "on": "held_out", "fine_tune": {"steps": 20, "lr": 0.5}}
    attacked = fedactors.run(scenario("label-flip", evaluation=evaluation), tmp_path / "a", fleet="local").metrics[-1]
    assert attacked["client_accuracy"] == pytest.approx(attacked["client_accuracy_of"]["honest"])
    assert set(attacked["client_accuracy_of"]) == {"honest", "liars"}
    assert attacked["clients_evaluated"] == 4


def test_samples_that_are_made_on_demand_have_wrong_labels_too(tmp_path):
    """The bits of labels that were flipped beforehand, and no more samples than without attackers."""
    task = {"dataset": {"name": "synthetic", "samples": 20}, "model": "logistic", "partition": "natural"}
    honest, flipped = (prepare(scenario(attack, honest=30, task=task)) for attack in (None, "label-flip"))
    assert flipped.client_source is not None
    for client in (3, 30):
        (x, y), (same, found) = honest.client_source.samples(client), flipped.client_source.samples(client)
        assert np.array_equal(x, same)
        assert found.tolist() == [(9 - label if client == 30 else label) for label in y.tolist()]
    assert np.isfinite(model(tmp_path, "run", "label-flip", honest=30, task=task)).all()


OWN = """
from typing import Literal
from fedactors.attacks.base import Attack, LabelAttack, UpdateAttack

class Summed(UpdateAttack):
    name: Literal["summed"] = "summed"
    def updates(self, rows, draws):
        return rows.sum(0)

class Together(UpdateAttack):
    name: Literal["together"] = "together"
    def updates(self, rows, draws):
        return rows - rows.mean(0)

class Nothing(UpdateAttack):
    name: Literal["nothing"] = "nothing"
    def updates(self, rows, draws):
        return rows * float("nan")

class Drawn(UpdateAttack):
    name: Literal["drawn"] = "drawn"
    def updates(self, rows, draws):
        return rows.clone().normal_()

class Long(UpdateAttack):
    name: Literal["long"] = "long"
    def updates(self, rows, draws):
        return rows * (float("nan") if rows.shape[1] > 50 else 1.0)

class Broken(UpdateAttack):
    name: Literal["broken"] = "broken"
    def updates(self, rows, draws):
        return rows / 0 if len(rows) else None + 1

class Fewer(LabelAttack):
    name: Literal["fewer"] = "fewer"
    def labels(self, labels, classes):
        return labels[labels != 3]

class Beyond(LabelAttack):
    name: Literal["beyond"] = "beyond"
    def labels(self, labels, classes):
        return labels + 1

class Halves(LabelAttack):
    name: Literal["halves"] = "halves"
    def labels(self, labels, classes):
        return labels / 2

class Bare(Attack):
    name: Literal["bare"] = "bare"

class Cautious(UpdateAttack):
    name: Literal["cautious"] = "cautious"
    def updates(self, rows, draws):
        return -rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "summed",
            "Summed.updates: returned a Tensor of shape (50,), torch.float32 (accepted: a tensor of shape (2, 50)",
        ),
        ("together", "Together.updates: a row depends on the rows beside it"),
        ("nothing", "Nothing.updates: returned NaN or Inf (accepted: finite numbers)"),
        ("drawn", "Drawn.updates: draws random numbers from torch"),
        ("broken", "Broken.updates: returned NaN or Inf"),
        ("fewer", "fewer: labels returned int64 of shape (9,), 0 to 9 (accepted: 10 whole numbers from 0 to 9)"),
        ("beyond", "beyond: labels returned int64 of shape (10,), 1 to 10 (accepted"),
        ("halves", "halves: labels returned float64 of shape (10,)"),
        ("bare", "found an Attack (accepted: an UpdateAttack or a LabelAttack)"),
        ("cautious", ""),
    ],
)
def test_an_attack_of_ones_own_is_tried(tmp_path, capsys, name, message):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(scenario(None).dump() | {"plugins": ["own.py"]}))
    code = main(["check", str(tmp_path / "s.yaml"), "--set", f"population.liars.attack={name}"])
    said = capsys.readouterr()
    if not message:
        assert code == 0
        assert "population.liars: 1 of 4 devices attack (cautious)" in said.out
        return
    assert code == 2
    assert "population.liars.attack: " in said.err
    assert message in said.err


def test_who_attacked_is_told_where_numbers_are_none(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    given = scenario(None).dump() | {"plugins": ["own.py"]}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(given))
    attacked = Scenario.load(tmp_path / "s.yaml", ["population.liars.attack=long"])
    with pytest.raises(DivergedError, match=r"the update of client 3 \(attacks: liars\)$"):
        fedactors.run(attacked, tmp_path / "run", fleet="local")


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
        (["population.liars.attack={name: label-flip, label: 3, to: 3}"], "label and to must differ"),
        (
            ["population.liars.attack={name: label-flip, label: 3, to: 10}"],
            "population.liars.attack: label-flip: found label 10 (accepted: 0 to 9)",
        ),
        (
            [
                "population.liars.attack=label-flip",
                "task.partition={name: classes, classes: 2, samples: 40, reallocate: true}",
            ],
            "samples are reallocated in every round, which no attack on labels can alter",
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
