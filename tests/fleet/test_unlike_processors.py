"""A run on nodes with unlike processors says that its bits may depend on them."""

import pytest

import fedactors
from fedactors import Scenario, bits
from fedactors.fleet.local import LocalFleet
from fedactors.simulation import runner
from fedactors.simulation.runner import resume
from tests.fleet.conftest import QUICKSTART
from tests.noting import Noting


class OnOtherNodes(LocalFleet):
    """A local fleet whose actors are said to be on nodes with the processors `kinds`."""

    def __init__(self, kinds):
        super().__init__()
        self.kinds = kinds

    def processors(self, bits):
        return self.kinds[bits]


def said(folder, wanted, kinds, monkeypatch):
    monkeypatch.setattr(bits, "vendor", lambda: "AuthenticAMD")
    monkeypatch.setattr(bits, "processor", lambda: "EPYC")
    monkeypatch.setattr(runner, "open_fleet", lambda *args, **options: OnOtherNodes({wanted: kinds}))
    scenario = Scenario.load(QUICKSTART, ["server.rounds=2", f"cluster.bits={wanted}"])
    first = Noting()
    fedactors.run(scenario, folder, report=False, progress=first, stop_after=1)
    second = Noting()
    resume(folder, report=False, progress=second)
    notes = [[note for note in told.notes if "unlike" in note] for told in (first, second)]
    assert notes[0] == notes[1]
    return notes[0]


@pytest.mark.parametrize(
    ("wanted", "kinds", "unlike"),
    [
        ("portable", ["AuthenticAMD"], ""),
        ("portable", ["GenuineIntel"], "AuthenticAMD and GenuineIntel"),
        ("portable", ["AuthenticAMD", "GenuineIntel"], "AuthenticAMD and GenuineIntel"),
        ("portable", [], ""),
        ("portable", [""], "unknown and AuthenticAMD"),
        ("native", ["EPYC"], ""),
        ("native", ["EPYC", "Xeon"], "EPYC and Xeon"),
    ],
)
def test_unlike_processors_are_told(wanted, kinds, unlike, tmp_path, monkeypatch):
    note = f"cluster.bits: nodes have unlike processors ({unlike}): bits may depend on which node trains which clients"
    assert said(tmp_path / "run", wanted, kinds, monkeypatch) == ([note] if unlike else [])


class Growing(OnOtherNodes):
    """A local fleet that is asked again after each round, by when further nodes have answered."""

    def __init__(self, kinds):
        super().__init__({"portable": []})
        self.answers = kinds

    def processors(self, bits):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_a_node_that_comes_later_is_told_once(tmp_path, monkeypatch):
    monkeypatch.setattr(bits, "vendor", lambda: "A")
    answers = [["A"], ["A"], ["A", "B"], ["A", "B"], ["A", "B", "C"], ["A", "B"]]
    monkeypatch.setattr(runner, "open_fleet", lambda *args, **options: Growing(answers))
    told = Noting()
    fedactors.run(Scenario.load(QUICKSTART, ["server.rounds=6"]), tmp_path / "run", report=False, progress=told)
    unlike = [note.partition("(")[2].partition(")")[0] for note in told.notes if "unlike" in note]
    assert unlike == ["A and B", "A and B and C"]
