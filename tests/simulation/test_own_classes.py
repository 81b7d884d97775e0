"""What is said of classes of the user before anything runs: transforms, aggregations, selections and behaviours."""

import pytest

import fedactors
from fedactors.errors import ScenarioError
from fedactors.simulation.checks.check import check
from fedactors.simulation.prepare import prepare
from fedactors.simulation.trials.own_classes import try_own_classes

HEAD = """
import random as python
from typing import Literal
import numpy as np
import torch
from fedactors.clock.behaviours.base import Behaviour
from fedactors.clock.selections.base import Selection, UniformSelector
from fedactors.learning.combining import Aggregation
from fedactors.transforms.base import Compressor, UpdateTransform

seen = []
"""
COMPRESSES = """
class Mine(Compressor):
    name: Literal["mine"] = "mine"
    _seen: object = 0.0
    def compress(self, rows, kept, given):
        return {}
"""
APPLIES = """
class Mine(UpdateTransform):
    name: Literal["mine"] = "mine"
    def state(self, layout):
        return {"last": layout.size}
    def apply(self, rows, kept, given):
        return rows + kept["last"] + given.draws.normal(rows.shape[1]), {}
"""
COMBINES = """
class Mine(Aggregation):
    name: Literal["mine"] = "mine"
    _seen: object = 0.0
    def combine(self, rows):
        return {}
"""
CHOOSES = """
class Mine(Selection):
    name: Literal["mine"] = "mine"
    def start(self, clients):
        return Chooser()

class Chooser(UniformSelector):
    def choose(self, candidates, count, version, random):
        return {}
"""
BEHAVES = """
class Mine(Behaviour):
    def play(self, device):
        while True:
            yield device.timeout(int(2e8 * (1 + {})))
            device.off()
            yield device.timeout("1s")
            device.on()
"""
OWN_ROW = r"a row depends on the rows beside it \(accepted: rows that follow from their own row"
AGAIN = r"returned something else when it was called again with the same arguments"


@pytest.fixture
def made(tmp_path):
    def scenario(code, population=(), **server):
        (tmp_path / "mine.py").write_text(HEAD + code)
        server = {"rounds": 4, "cohort": 3, "local": {"epochs": 1, "batch": 64}, **server}
        task = {"dataset": "digits", "model": "logistic", "partition": "iid"}
        own = {} if population or not code else {"plugins": [str(tmp_path / "mine.py")]}
        groups = [{"name": "phones", "count": 12, "compute": {"per_sample": "5ms"}, **dict(population)}]
        return fedactors.Scenario.load({"name": "own", "task": task, "population": groups, "server": server, **own})

    return scenario


def tried(scenario):
    try_own_classes(prepare(scenario))


TRANSFORMS = {
    "one value": ("rows.half().float()", r"Mine.compress: returned a Tensor .* \(accepted: rows, and a dictionary"),
    "16 bits": ("rows.half(), {}", r"returned rows as a Tensor of shape \(2, 650\), torch.float16"),
    "another shape": ("rows[:, :5], {}", r"returned rows as a Tensor of shape \(2, 5\)"),
    "not finite": ("rows / 0, {}", r"Mine.compress: returned NaN or Inf \(accepted: finite numbers\)"),
    "all rows": ("rows / rows.norm(), {}", OWN_ROW),
    "in place": ("rows.mul_(0.5), {}", r"mine.py, Mine: compress changes rows in place"),
    "torch": ("rows + torch.randn_like(rows), {}", r"draws random numbers from torch \(accepted: .* given.draws"),
    "a new generator": ("rows * np.random.default_rng().random(), {}", AGAIN),
    "a mistake": ("rows.hlaf(), {}", r"Mine: tried on updates: .*mine.py, line \d+, in compress: AttributeError.*hlaf"),
    "state in the object": ("[rows + self._seen, {}, setattr(self, '_seen', rows)][0], {}", AGAIN),
    "nothing that is kept": ("", r"Mine.apply: returned no last \(accepted: it beside the rows"),
}


@pytest.mark.parametrize("case", TRANSFORMS)
def test_a_transform_is_tried(made, case):
    returned, said = TRANSFORMS[case]
    code = COMPRESSES.format(returned) if returned else APPLIES
    with pytest.raises(ScenarioError, match=rf"^.*: server.uplink: .*{said}"):
        tried(made(code, uplink=["mine"]))


def test_a_transform_is_tried_where_it_stands_with_what_it_keeps(made):
    sound = APPLIES.replace(", {}", ', {"last": rows}')
    tried(made(sound, uplink=[{"name": "topk", "share": 0.1, "error_feedback": True}, "mine"]))
    unit = COMPRESSES.format("rows / rows.norm(dim=1, keepdim=True), {}")
    tried(made(unit, uplink=[{"name": "mine", "error_feedback": True}], downlink=["difference", "mine"]))
    with pytest.raises(ScenarioError, match=r"server.downlink: .*draws random numbers from random"):
        tried(made(COMPRESSES.format("rows * python.random(), {}"), downlink=["mine"]))


AGGREGATIONS = {
    "a pair": ("rows.median(0)", r"returned a median \(accepted: a tensor of shape \(650,\), torch.float32"),
    "a number": ("rows.mean()", r"returned a Tensor of shape \(\)"),
    "all rows": ("rows", r"returned a Tensor of shape \(3, 650\)"),
    "not finite": ("rows.mean(0) / 0", "returned NaN or Inf"),
    "random numbers": ("rows[torch.randint(len(rows), ())]", "draws random numbers from torch"),
    "in place": ("rows.sort(0).values.mean(0) + rows.zero_()[0]", "combine changes rows in place"),
    "state in the file": ("[seen.append(rows.mean(0)), sum(seen)][1]", AGAIN),
}


@pytest.mark.parametrize("case", AGGREGATIONS)
def test_an_aggregation_is_tried(made, case):
    returned, said = AGGREGATIONS[case]
    with pytest.raises(ScenarioError, match=rf"^.*: server.aggregation: mine.py, Mine.*{said}"):
        tried(made(COMBINES.format(returned), aggregation="mine"))


def test_a_sound_aggregation_is_tried_on_as_many_updates_as_a_round_wants(made):
    tried(made(COMBINES.format("rows[:3].median(0).values if len(rows) == 3 else None"), aggregation="mine"))
    facts = COMBINES.replace("combine(self, rows)", "combine_in_round(self, rows, facts, compared)")
    tried(made(facts.format("rows[:, :compared].sum(0) / facts.heard"), aggregation="mine"))


def test_what_is_built_in_would_pass(made, monkeypatch):
    """The rules for classes of the user are those that all classes here keep."""
    for module in ("own_classes", "rows_trial"):
        monkeypatch.setattr(f"fedactors.simulation.trials.{module}.is_own", lambda found: True)
    for name in ("scaffold", "feddyn", "fednova", "fed-lamb", "fed-ams", "ditto", "qfedavg", "fedntd", "fedadam"):
        tried(made("", algorithm=name))
    for rule in (
        "median",
        "geometric_median",
        {"name": "krum", "malicious": 1},
        {"name": "trimmed_mean", "share": 0.3},
    ):
        tried(made("", aggregation=rule, cohort=5))
    noise = {"name": "gaussian", "multiplier": 0.1}
    for chain in (
        ["lowrank"],
        [{"name": "randomk", "share": 0.1}, {"name": "quantize", "bits": 4}],
        ["signs"],
        ["adaptive-clip", {**noise, "added": "clients"}],
        [{"name": "mask", "frozen": ["*bias"]}, {"name": "topk", "share": 0.1}],
        [{"name": "clip", "norm": 1.0}, noise],
    ):
        tried(made("", uplink=chain))


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("np.random.permutation(candidates)[:count]", "draws random numbers from numpy.random .*that choose is given"),
        ("python.sample(list(candidates), count)", "Chooser.choose: draws random numbers from random"),
        (
            "np.random.default_rng().permutation(candidates)[:count]",
            "Mine: two plays of the same rounds have other plans",
        ),
        ("random.permutation(candidates)[:count]", ""),
    ],
)
def test_a_selection_chooses_the_same_clients_again(made, returned, said):
    scenario = made(CHOOSES.format(returned), selection="mine")
    if not said:
        check(scenario)
        return
    with pytest.raises(ScenarioError, match=said):
        check(scenario)


@pytest.mark.parametrize("drawn", ["python.random()", "device.random.random()"])
def test_a_behaviour_of_random_numbers_of_its_own_is_refused_by_check(made, tmp_path, drawn):
    behaviour = {"name": "process", "behaviour": f"{tmp_path}/mine.py:Mine"}
    scenario = made(BEHAVES.format(drawn), {"availability": behaviour})
    if drawn.startswith("device"):
        check(scenario)
        return
    with pytest.raises(ScenarioError, match=r"mine.py, Mine: two plays .* \(accepted: .* device.random"):
        check(scenario)
