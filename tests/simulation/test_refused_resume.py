"""A run that cannot be gone on with stays as it is, to the last file."""

import hashlib
import shutil

import pytest

import fedactors
from fedactors import Scenario
from fedactors.errors import RunFolderError
from fedactors.simulation.progress import Silent
from fedactors.simulation.resume.checkpoint import checkpoints
from fedactors.simulation.runner import resume
from tests.fleet.conftest import QUICKSTART
from tests.simulation.test_branch_past import scenario as whole_scenario

CAMPUS = QUICKSTART.parents[1] / "traces/campus.csv"


def scenario(recording):
    said = whole_scenario("cluster.checkpoint_every=3").model_dump(mode="json")
    said["population"] = [{"name": "phones", "count": 20, "availability": {"name": "trace", "path": str(recording)}}]
    return Scenario.model_validate(said)


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def ended(tmp_path, pages):
    """The folder of a run that came to its end, and the recording of its devices."""
    recording = tmp_path / "campus.csv"
    shutil.copy(CAMPUS, recording)
    folder = fedactors.run(scenario(recording), tmp_path / "run", fleet="local").folder
    assert {"report.html", "wall.parquet", "windows.parquet", "summary.json"} <= contents(folder).keys()
    return folder, recording


@pytest.mark.parametrize("previous", [False, True])
def test_other_recordings_leave_a_run_as_it_was(ended, previous):
    folder, recording = ended
    before = contents(folder)
    lines = recording.read_text().splitlines(keepends=True)
    recording.write_text("".join([*lines[:2], *lines[len(lines) // 2 :]]))
    with pytest.raises(RunFolderError, match="the clock gives other plans"):
        resume(folder, fleet="local", previous=previous)
    assert contents(folder) == before


class Impatient(Silent):
    """Interrupts a run as soon as it is shown."""

    def over(self, name, rounds):
        raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupt_before_a_run_goes_on_leaves_it_as_it_was(ended):
    folder, _ = ended
    before = contents(folder)
    with pytest.raises(KeyboardInterrupt):
        resume(folder, fleet="local", previous=True, progress=Impatient())
    assert contents(folder) == before
    assert len(checkpoints(folder)) == 2
    whole = contents(fedactors.run(scenario(ended[1]), folder.parent / "whole", fleet="local").folder)
    resume(folder, fleet="local", previous=True)
    same = ("plans.parquet", "orders.parquet", "weights.parquet", "clients.parquet", "checkpoint/model.safetensors")
    assert [contents(folder)[name] for name in same] == [whole[name] for name in same]
