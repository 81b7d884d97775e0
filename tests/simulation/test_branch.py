"""Branches share what came before, bit for bit; `diff` says where two runs part."""

import json

import pytest

import fedactors
from fedactors.cli.main import main
from fedactors.errors import RunFolderError, ScenarioError
from fedactors.simulation.inspect.difference import diff, text
from fedactors.simulation.resume.branch import branch
from tests.simulation.test_moving import run, scenario

GROUPS = ({}, {}, {}, {"depart": "40s"})


def membership(departures):
    return {"name": "vanilla", "departures": departures}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Eight rounds; the last device leaves after the fourth, and is included; checkpoints after rounds 3 and 6."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    data = scenario(*GROUPS, rounds=8, membership=membership("include")).model_dump(mode="json")
    data["cluster"] |= {"checkpoint_every": 3, "checkpoints_kept": 9}
    fedactors.run(fedactors.Scenario.model_validate(data), folder, fleet="local", report=False)
    return folder


def shared(one, other, rounds):
    rows = [(folder / "metrics.jsonl").read_bytes().splitlines()[:rounds] for folder in (one, other)]
    return rows[0] == rows[1]


@pytest.mark.parametrize("at", [1, 3, 4])
def test_a_branch_is_the_run_that_would_have_been(recorded, tmp_path, at):
    """With checkpoints of that round, before it, or none but the first; equal to a whole run of the other decision."""
    other = run(tmp_path / "other", *GROUPS, rounds=8, membership=membership("exclude"))
    found = branch(recorded, at, ["server.membership.departures=exclude"], tmp_path / "branch", fleet="local")
    assert found.summary["digests"] == other.summary["digests"]
    assert shared(recorded, tmp_path / "branch", at)
    parted = diff(recorded, tmp_path / "branch")
    assert parted["plans"]["first"] is None
    assert (parted["metrics"]["equal_rounds"], parted["model_equal"]) == (4, False)
    assert parted["scenario"] == ['server.membership.departures: "include", now "exclude"']


def test_a_branch_that_changes_nothing_ends_alike(recorded, tmp_path, capsys):
    assert main(["branch", str(recorded), "--at", "round=5", "--fleet", "local", "--out", str(tmp_path / "same")]) == 0
    capsys.readouterr()
    assert main(["diff", str(recorded), str(tmp_path / "same")]) == 0
    said = capsys.readouterr().out
    assert "scenario   the same" in said
    assert "the same in 8 rounds" in said
    assert "the same bits" in said


def test_the_clock_may_part_after_the_branch(recorded, tmp_path):
    """More rounds, and a deadline of the future: the device leaves two rounds later than it did."""
    later = ["population.g3.depart=60s", "server.rounds=10"]
    found = branch(recorded, 3, later, tmp_path / "later", fleet="local")
    assert found.summary["plans"] == 10
    parted = diff(recorded, tmp_path / "later")
    assert parted["plans"]["equal_rounds"] == 3
    assert "departed" in parted["plans"]["first"]["apart"]
    assert "in round 4:" in text(parted)


@pytest.mark.parametrize(
    ("at", "changes", "error", "said"),
    [
        (9, [], RunFolderError, "no round 9 to branch at"),
        (4, ["server.deadline=9s"], ScenarioError, "would have changed round 1 already"),
        (4, ["population.g3.depart=30s"], ScenarioError, "would have changed round 3 already"),
        (4, ["seed=5"], ScenarioError, "cannot change seed"),
        (4, ["task.model.hidden=[9]"], ScenarioError, "cannot change task.model.hidden"),
        (4, ["server.algorithm=scaffold"], ScenarioError, "an algorithm with the same state"),
    ],
)
def test_what_is_shared_cannot_be_changed(recorded, tmp_path, at, changes, error, said):
    with pytest.raises(error, match=said):
        branch(recorded, at, changes, tmp_path / "out", fleet="local")
    assert not (tmp_path / "out").exists()


def test_a_branch_needs_the_rounds_that_were_recorded(recorded, tmp_path):
    import shutil

    shutil.copytree(recorded, tmp_path / "run")
    path = tmp_path / "run/metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[1]["loss"] += 1e-9
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(RunFolderError, match="not those that were recorded"):
        branch(tmp_path / "run", 3, [], tmp_path / "out", fleet="local")


def test_replays_are_compared_by_their_plans(recorded, tmp_path, capsys):
    scenario = str(recorded / "scenario.yaml")
    assert main(["replay", scenario, "--out", str(tmp_path / "one")]) == 0
    assert main(["replay", scenario, "--set", "server.deadline=9s", "--out", str(tmp_path / "other")]) == 0
    capsys.readouterr()
    assert main(["diff", str(tmp_path / "one"), str(tmp_path / "other")]) == 0
    said = capsys.readouterr().out
    assert "now 9" in said
    assert "not the same; in round 1:" in said
    assert "model      none in a replay" in said
    beside = diff(recorded, tmp_path / "one")
    assert (beside["model_equal"], beside["replays"], beside["made_with"]) == (None, [False, True], [])
    assert beside["metrics"] == beside["plans"] == {"equal_rounds": 8, "first": None}


def test_mistakes_are_told(tmp_path, capsys):
    assert main(["diff", str(tmp_path), str(tmp_path)]) == 2
    assert "scenario.yaml: not there" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["branch", "run", "--at", "end"])
    assert "accepted: round=N" in capsys.readouterr().err
