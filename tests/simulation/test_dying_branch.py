"""A branch that ends while its folder is made: what is left is no run, and nobody takes it for another experiment."""

import errno
import os

import pytest

import fedactors
from fedactors.errors import FolderAccessError, RunFolderError
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.resume import branch as branches
from fedactors.simulation.runner import resume
from tests.simulation.test_moving import scenario

CHANGES = ["server.rounds=4", "server.schedule.name=constant"]
STEPS = ["write", "write", "write_code", "client_metrics.carry_over", "inner_folder", "save"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "run"
    chosen = scenario({}, {}, rounds=3, membership=None, among="available", evaluation={"every": 1, "clients": "all"})
    return fedactors.run(chosen, folder, fleet="local", report=False).folder


@pytest.mark.parametrize(("step", "before"), [(step, STEPS[:k].count(step)) for k, step in enumerate(STEPS)])
def test_a_branch_that_fails_before_its_folder_is_whole_cannot_be_gone_on_with(
    recorded, tmp_path, monkeypatch, step, before
):
    """A disk without room, which a program meets as an error of ours; a kill at the same moment leaves the same."""
    place = getattr(branches, step.partition(".")[0]) if "." in step else branches
    name = step.rpartition(".")[2]
    works, left = getattr(place, name), [before]

    def fails(*given, **named):
        if not left[0]:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        left[0] -= 1
        return works(*given, **named)

    monkeypatch.setattr(place, name, fails)
    with pytest.raises(FolderAccessError, match=f"cannot be written: {os.strerror(errno.EDQUOT)}"):
        branches.branch(recorded, 3, CHANGES, tmp_path / "branch", fleet="local", report=False)
    monkeypatch.undo()
    with pytest.raises(RunFolderError):
        resume(tmp_path / "branch", fleet="local", report=False)
    with pytest.raises(RunFolderError):
        audit(tmp_path / "branch")
