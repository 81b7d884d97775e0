"""A run goes on where it was computed: at its clients, its server and its central learner."""

import pytest

import fedactors
from fedactors.errors import RunFolderError
from fedactors.simulation.runner import resume
from tests.algorithms.test_mixed_runs import named, scenario
from tests.simulation.test_checkpoints import change_header


@pytest.fixture
def cut(tmp_path):
    """Return the folder of a run with a central learner, stopped after a round."""
    made = scenario(named("mixed-pt", central_steps=2, central_batch=20))
    fedactors.run(made, tmp_path / "run", fleet="local", report=False, stop_after=1)
    return tmp_path / "run"


@pytest.mark.parametrize(("key", "part"), [("gpus_per_actor", "clients"), ("central_gpus", "central")])
def test_another_device_type_of_any_part_is_refused(cut, key, part):
    with pytest.raises(RunFolderError, match=rf"computed on cpu so far, not on cuda \({part}\).*{key}"):
        resume(cut, [f"cluster.{key}=1"], fleet="local")


def test_a_checkpoint_of_before_central_learners_were_noted_goes_on(cut):
    change_header(cut, devices={"clients": "cpu", "server": "cpu"})
    assert resume(cut, fleet="local", report=False).summary["plans"] == 3
