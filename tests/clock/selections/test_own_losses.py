"""A selection of the user that looks at losses gets them if it says so, and is refused if it does not."""

import pytest

from fedactors.cli.main import main
from fedactors.errors import ScenarioError
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.check import check
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import run

OWN = """
from typing import ClassVar, Literal
import numpy as np
from fedactors.clock.selections.base import Selection, UniformSelector

class ByLoss(Selection):
    {steers}
    name: Literal["by-loss"] = "by-loss"
    def start(self, clients):
        return Highest(len(clients.samples))

class Highest(UniformSelector):
    def __init__(self, clients):
        self.loss = np.full(clients, np.inf)
    def choose(self, candidates, count, version, random):
        return candidates[np.argsort(-self.loss[candidates], kind="stable")[:count]]
"""
LEARNED = """    def learned(self, plan, losses):
        """
LEARNS = "self.loss[list(losses)] = [loss.mean for loss in losses.values()]"
STEERS = "steers: ClassVar[bool] = True"
SCENARIO = """
name: own
plugins: [own.py]
task: {dataset: digits, model: logistic, partition: {name: dirichlet, alpha: 0.1}}
population: [{name: phones, count: 6}]
server: {rounds: 6, cohort: 2, selection: by-loss, local: {epochs: 1}}
"""


@pytest.fixture
def own(tmp_path):
    def made(steers="", learned=LEARNS):
        receives = "" if learned is None else LEARNED + learned
        (tmp_path / "own.py").write_text(OWN.format(steers=steers or "pass") + receives)
        (tmp_path / "own.yaml").write_text(SCENARIO)
        return Scenario.load(tmp_path / "own.yaml")

    return made


def test_one_that_does_not_say_so_is_refused_by_check_and_by_run(own, tmp_path, capsys):
    scenario = own()
    with pytest.raises(ScenarioError, match=r"own\.py, Highest defines learned, .*steers: ClassVar\[bool\] = True"):
        check(scenario)
    assert main(["run", str(tmp_path / "own.yaml"), "--fleet", "local", "--out", str(tmp_path / "run")]) == 2
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert "own.py, ByLoss does not say that it looks at losses" in line


def test_only_selectors_that_receive_losses_have_a_run_wait_for_them(own):
    assert not prepare(own(learned=None)).clock().steered
    assert prepare(own(STEERS)).clock().steered
    with pytest.raises(ScenarioError, match=r"own\.py, ByLoss says that it looks .* own\.py, Highest does not define"):
        check(own(STEERS, learned=None))
    for nothing in ("pass", '"Ignore the losses."', "return None"):
        with pytest.raises(ScenarioError, match=r"accepted: steers.*; or no learned"):
            check(own(learned=nothing))


def test_one_that_says_so_asks_by_the_losses_of_training(own, tmp_path):
    """Two of six in each round: all have had a turn after three; without losses, 0 and 1 would be asked always."""
    found = run(own(STEERS), tmp_path / "run", fleet="local", report=False)
    asked = found.frames.orders.groupby("version")["client"].apply(sorted).tolist()
    assert sorted(client for clients in asked[:3] for client in clients) == list(range(6))
