"""A second run into a folder is one message, which says what is there and what to pass."""

import json

import pytest

import fedactors
from fedactors.cli.main import main
from fedactors.errors import RunFolderError

ANOTHER = "accepted: another folder: --out DIR, in Python out=…"


@pytest.fixture(scope="module")
def scenario():
    return fedactors.Scenario.load("quickstart", ["server.rounds=4", "population.phones.count=20"])


@pytest.fixture
def folder(scenario, tmp_path):
    """Return the folder of a run that was stopped after its first round."""
    folder = tmp_path / "my run"
    fedactors.run(scenario, folder, fleet="local", stop_after=1)
    return folder


def refused(function, *arguments, **options):
    with pytest.raises(RunFolderError) as caught:
        function(*arguments, **options)
    return str(caught.value)


def test_a_run_that_was_stopped_is_gone_on_with_as_the_message_says(scenario, folder):
    said = f"{folder}: not empty: it holds a run that was stopped ({ANOTHER}; or to go on: "
    said += f"fedactors resume '{folder}', in Python fedactors.resume('{folder}'))"
    assert refused(fedactors.run, scenario, folder, fleet="local") == said
    assert refused(fedactors.replay, scenario, folder) == said
    (folder / "summary.json").unlink()  # as after a kill
    assert refused(fedactors.run, scenario, folder, fleet="local") == said
    assert len(fedactors.resume(str(folder), fleet="local").metrics) == 4


def test_a_run_that_has_ended_stays_and_its_folder_is_named(scenario, folder, capsys):
    digests = fedactors.resume(folder, fleet="local").summary["digests"]
    said = f"{folder}: not empty: it holds a run ({ANOTHER})"
    assert refused(fedactors.run, scenario, folder, fleet="local") == said
    assert main(["run", "quickstart", "--fleet", "local", "--out", str(folder)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"fedactors: {said}"
    assert json.loads((folder / "summary.json").read_text())["digests"] == digests


def test_a_replay_cannot_be_gone_on_with(scenario, tmp_path):
    fedactors.replay(scenario, tmp_path / "replay", rounds=1)
    said = f"{tmp_path}/replay: not empty: it holds a run ({ANOTHER})"
    assert refused(fedactors.replay, scenario, tmp_path / "replay") == said


def test_a_damaged_summary_does_not_hide_the_message(scenario, folder):
    (folder / "summary.json").write_text("{")
    assert refused(fedactors.run, scenario, folder, fleet="local") == f"{folder}: not empty: it holds a run ({ANOTHER})"
