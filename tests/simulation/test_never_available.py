"""Populations of which no device is ever on, and laws that one level cannot have: refused before anything runs."""

import pytest
import yaml

from fedactors.cli.main import main
from fedactors.clock.laws import law
from fedactors.errors import ScenarioError
from tests.simulation.test_checkpoints import scenario_of


def written(folder, recording, **availability):
    (folder / "devices.csv").write_text(recording)
    said = scenario_of().dump()
    said["population"] = [
        {"name": "spots", "count": 100, "availability": {"name": "trace", "path": "devices.csv", **availability}}
    ]
    said["server"]["cohort"] = 1
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(said))
    return str(path)


COMMANDS = {"check": ["--quick"], "replay": ["--out", "{out}"], "run": ["--fleet", "local", "--out", "{out}"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_spot_file_of_zeros_is_refused(command, tmp_path, capsys):
    path = written(tmp_path, "", format="spot")
    (tmp_path / "devices.csv").write_text('{"metadata": {"gap_seconds": 300}, "data": [0, 0, 0, 0]}')
    words = [word.format(out=tmp_path / "out") for word in COMMANDS[command]]
    assert main([command, path, *words]) == 2
    said = capsys.readouterr().err
    assert "no device is ever available under this rule" in said
    assert said.startswith(f"fedactors: {path}: population.0.availability: devices.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_rule_that_nobody_fits_is_refused(command, tmp_path, capsys, shared):
    recording = str(shared / "traces/flash/state_traces_60.json")
    rule = "charging & battery>101"
    path = written(tmp_path, "", path=recording, when=rule)
    words = [word.format(out=tmp_path / "out") for word in COMMANDS[command]]
    assert main([command, path, *words]) == 2
    assert f'{recording}, when "{rule}": no device is ever available' in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_level_cannot_have_a_deviation():
    with pytest.raises(ScenarioError, match="which 1 level cannot give"):
        law("T30", 1)
    assert law("T0", 1) == (0.0, 1.0)


def test_check_names_the_group_whose_law_does_not_fit(capsys):
    assert main(["check", "scenarios/ruan-sampled.yaml", "--quick", "--set", "server.local.epochs=1"]) == 2
    assert "population.1.sampled: T30 has mean 75.3% and deviation 14.8%, which 1 level" in capsys.readouterr().err
