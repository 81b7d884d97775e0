"""Populations of which no device is ever on, and laws that one level cannot have: refused before anything runs."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.clock.laws import law
from fedactors.errors import ScenarioError
from fedactors.simulation.checks.last_checks import check_first_round
from fedactors.simulation.prepare import prepare
from fedactors.workload import IDLE
from tests.simulation.test_checkpoints import scenario_of


def written(folder, recording, **availability):
    (folder / "devices.csv").write_text(recording)
    said = scenario_of().dump()
    recorded = {} if "behaviour" in availability else {"name": "trace", "path": "devices.csv"}
    said["population"] = [{"name": "spots", "count": 100, "availability": recorded | availability}]
    said["server"]["cohort"] = 1
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(said))
    return str(path)


COMMANDS = {"check": [], "replay": ["--out", "{out}"], "run": ["--fleet", "local", "--out", "{out}"]}


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


BEHAVIOURS = """
from fedactors.clock.behaviours.base import Behaviour


class Off(Behaviour):
    def play(self, device):
        device.off()
        yield device.timeout("1 h")


class Gone(Behaviour):
    def play(self, device):
        device.depart()
        yield device.timeout("1 h")


class Frantic(Behaviour):
    def play(self, device):
        while True:
            device.off()
            yield device.timeout("10 us")
            device.on()
            yield device.timeout("10 us")


class Polling(Behaviour):
    def play(self, device):
        while True:
            yield device.timeout(1)
"""


def refused_by_all(path, words, tmp_path, capsys, *more):
    """Check that check, replay and run refuse a scenario with the same words, and make no folder."""
    for command, arguments in COMMANDS.items():
        assert main([command, path, *more, *(word.format(out=tmp_path / "out") for word in arguments)]) == 2, command
        said = capsys.readouterr().err
        assert words in said, command
        assert said.startswith(f"fedactors: {path}: ")
        assert said.count("\n") == 1
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("behaviour", ["Off", "Gone"])
def test_a_behaviour_that_is_never_on_is_refused(behaviour, tmp_path, capsys):
    (tmp_path / "people.py").write_text(BEHAVIOURS)
    path = written(tmp_path, "", name="process", behaviour=f"people.py:{behaviour}")
    words = f"population.0.availability: people.py:{behaviour}: no device is ever available under this rule"
    refused_by_all(path, words, tmp_path, capsys)


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("Frantic", "population: behaviours let their devices come and go 2,001 times by"),
        pytest.param(
            "Polling",
            "population: more than 600,000 events in less than a second of virtual time",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_behaviour_that_hardly_lets_time_pass_is_refused(behaviour, words, tmp_path, capsys):
    (tmp_path / "people.py").write_text(BEHAVIOURS)
    path = written(tmp_path, "", name="process", behaviour=f"people.py:{behaviour}")
    began = time.process_time()
    assert main(["check", path]) == 2
    assert words in capsys.readouterr().err
    assert time.process_time() - began < 20


@pytest.mark.parametrize("timing", ["", "fedbuff"])
def test_a_run_that_ends_before_its_first_device_comes_is_refused(timing, tmp_path, capsys):
    path = written(tmp_path, "device,on_s,off_s\na,100,200\n", offset="none", begin="0s")
    if timing:
        said = yaml.safe_load(Path(path).read_text())
        del said["server"]["cohort"]
        said["server"]["participation"] = "uniform"
        said["server"]["timing"] = {"name": "fedbuff", "concurrency": 2, "buffer": 1}
        Path(path).write_text(yaml.safe_dump(said))
    more = ["--set", "server.until=100s"]
    refused_by_all(path, "server.until: no round ends, because no device can be asked before", tmp_path, capsys, *more)
    more[1] = "server.until=101s"
    assert main(["check", path, *more]) == 0


def test_devices_that_are_on_and_have_no_data_are_nobody(tmp_path):
    """Of two devices only the first is ever on, and only the second has anything to do."""
    path = written(tmp_path, "device,on_s,off_s,first_s,last_s\na,0,9,0,10\nb,,,0,10\n", assign="in_order")
    prepared = prepare(Scenario.load(path, ["population.0.count=2", "task.partition=iid"]))
    first, second = prepared.workloads
    check_first_round(replace(prepared, workloads=[first, IDLE]))
    with pytest.raises(ScenarioError, match=r"ever available under this rule \(nobody can be asked any more"):
        check_first_round(replace(prepared, workloads=[IDLE, second]))


def test_one_level_cannot_have_a_deviation():
    with pytest.raises(ScenarioError, match="which 1 level cannot give"):
        law("T30", 1)
    assert law("T0", 1) == (0.0, 1.0)


def test_check_names_the_group_whose_law_does_not_fit(capsys):
    changed = ["--set", "server.local.epochs=1", "--set", "task.dataset=digits"]
    assert main(["check", "scenarios/ruan-sampled.yaml", *changed]) == 2
    assert "population.1.sampled: T30 has mean 75.3% and deviation 14.8%, which 1 level" in capsys.readouterr().err
