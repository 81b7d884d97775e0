"""The names of the package itself: functions and classes, which travel to other processes as such."""

import json
import subprocess
import sys

import pytest

import fedactors
from fedactors.cli.main import main
from fedactors.errors import UsageError

CALLING = """
import fedactors

def work(path):
    return fedactors.run, fedactors.Scenario.load(path).name
"""


def test_run_is_a_function_and_no_module():
    assert callable(fedactors.run)
    assert fedactors.run.__module__ == "fedactors.simulation.runner"
    with pytest.raises(ModuleNotFoundError):
        __import__("fedactors.run")


REPLAYING = """
import sys
import fedactors
found = fedactors.replay(fedactors.Scenario.load("quickstart", ["server.rounds=2"]))
assert found.folder is None
assert found.summary["plans"] == 2
assert not {"torch", "ray"} & set(sys.modules)
"""


def test_replay_is_a_function_that_needs_neither_torch_nor_ray():
    done = subprocess.run([sys.executable, "-c", REPLAYING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_check_returns_what_the_command_prints(capsys):
    """Of a scenario's name, a mapping or a scenario, as `run`, `replay` and `verify` take them."""
    assert main(["check", "quickstart", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    found = fedactors.check("quickstart")
    assert {"schema": printed["schema"], **found} == printed
    assert fedactors.check(PLAIN)["name"] == "plain"
    with pytest.raises(UsageError, match=r"server\.rounds"):
        fedactors.check({**PLAIN, "server": {"rounds": -1}})


def test_what_load_takes_is_taken_in_place_of_a_scenario(tmp_path):
    made = fedactors.Scenario.load(PLAIN)
    ways = [
        fedactors.replay(made),
        fedactors.replay(PLAIN),
        fedactors.run(PLAIN, tmp_path, fleet="local", report=False),
    ]
    assert len({one.summary["digests"]["plans"] for one in ways}) == 1
    with pytest.raises(UsageError, match="no such scenario"):
        fedactors.run("no such scenario")


def test_replay_writes_a_folder_that_load_run_opens(tmp_path):
    scenario = fedactors.Scenario.load("quickstart", ["server.rounds=9"])
    found = fedactors.replay(scenario, tmp_path / "replay", rounds=2)
    assert found.folder == tmp_path / "replay"
    assert found.summary["ended_because"] == "asked for 2 rounds"
    assert fedactors.load_run(found.folder).summary["digests"] == found.summary["digests"]
    with pytest.raises(UsageError, match=f"{tmp_path}/replay: "):
        fedactors.replay(scenario, tmp_path / "replay")


def test_a_function_that_calls_run_can_be_sent_to_another_process(tmp_path):
    """As a notebook or a script does: the function has no module that the other process could import."""
    dumps = pytest.importorskip("ray.cloudpickle").dumps
    scope = {"__name__": "__main__"}
    exec(CALLING, scope)
    (tmp_path / "work").write_bytes(dumps(scope["work"]))
    scenario = "scenarios/quickstart.yaml"
    code = f"import pickle; found = pickle.load(open({str(tmp_path / 'work')!r}, 'rb'))({scenario!r}); print(*found)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<function run at ")
    assert done.stdout.endswith(" quickstart\n")


PLAIN = {
    "name": "plain",
    "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
    "population": [{"name": "phones", "count": 10}],
    "server": {"rounds": 2, "cohort": 0.5},
}


def test_a_scenario_is_made_of_plain_data():
    """Without a warning, of which each is an error in tests; what is given stays as it is."""
    loaded = fedactors.Scenario.load(PLAIN, ["server.rounds=3"])
    assert (loaded.server.rounds, loaded.server.cohort, PLAIN["server"]["rounds"]) == (3, 5, 2)
    assert loaded.source == 'scenario "plain"'
    made = fedactors.Scenario(**PLAIN)
    assert made.dump() == fedactors.Scenario.load(PLAIN).dump()
    assert made.server.cohort == 5
    with pytest.raises(UsageError, match=r'^scenario "plain": server.rounds: .*found'):
        fedactors.Scenario.load({**PLAIN, "server": {"rounds": -1}})


LISTING = """
import sys
import fedactors
assert {"Scenario", "load_run", "replay", "resume", "run", "__version__"} <= set(dir(fedactors)), dir(fedactors)
assert {"Scenario", "check", "compare", "load_run", "replay", "resume", "run", "sweep"} == set(fedactors.__all__)
assert not {"numpy", "torch", "ray", "fedactors.scenario"} & set(sys.modules)
"""


def test_the_package_lists_its_names_without_importing_what_they_stand_for():
    done = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_run_itself_can_be_sent():
    pickler = pytest.importorskip("ray.cloudpickle")
    assert pickler.loads(pickler.dumps(fedactors.run)) is fedactors.run
