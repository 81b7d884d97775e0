"""What clients keep survives on disk, and a pipeline goes on from there with the same bits."""

import numpy as np
import pytest

from fedactors import Scenario
from fedactors.errors import RunFolderError
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.messages import SavedState
from fedactors.fleet.pipeline import Pipeline
from fedactors.simulation.prepare import prepare
from fedactors.simulation.resume import client_state_files
from fedactors.simulation.runner import load
from fedactors.simulation.tasks import task_of
from tests.fleet.conftest import QUICKSTART


def test_a_round_trip_over_several_shards(tmp_path):
    kept = [
        (client, {"c": np.full(3, client, np.float32), "m": np.zeros(2, np.float32)}) for client in range(0, 300, 2)
    ]
    paths = list(client_state_files.save(tmp_path, kept))
    assert sorted(tmp_path.iterdir()) == paths
    assert len(paths) == 3
    found = list(client_state_files.load(reversed(paths)))
    assert [client for client, _ in found] == [client for client, _ in kept]
    for (_, one), (_, other) in zip(found, kept, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in ("c", "m"))


def test_a_damaged_shard_is_named(tmp_path):
    (shard,) = client_state_files.save(tmp_path, [(5, {"c": np.ones(3, np.float32)})])
    shard.write_bytes(shard.read_bytes()[:20])
    with pytest.raises(RunFolderError, match=r"clients-00000005\.safetensors"):
        list(client_state_files.load([shard]))


@pytest.mark.parametrize("algorithm", ["scaffold", "feddyn", "fsl"])
def test_a_pipeline_goes_on_from_what_was_saved(algorithm, tmp_path):
    changes = ["server.rounds=6", f"server.algorithm={algorithm}", "server.data={name: iid, samples: 50}"]
    prepared = prepare(Scenario.load(QUICKSTART, changes))
    tasks = [task_of(plan, prepared, "cpu", last=False) for plan in prepared.clock()]

    def play(pipeline, some):
        for task in some:
            pipeline.submit(task)
            pipeline.finish()

    with LocalFleet() as one_fleet, LocalFleet() as another, LocalFleet() as third:
        whole = Pipeline(one_fleet, *load(prepared))
        play(whole, tasks)
        first = Pipeline(another, *load(prepared))
        play(first, tasks[:3])
        saved = SavedState(3, first.state(3), client_state_files.load(client_state_files.save(tmp_path, first.kept())))
        second = Pipeline(third, *load(prepared), saved=saved)
        play(second, tasks[3:])
        for name, value in whole.state(6).items():
            assert np.array_equal(value, second.state(6)[name])
        for (client, one), (again, other) in zip(whole.kept(), second.kept(), strict=True):
            assert client == again
            assert all(np.array_equal(one[name], other[name]) for name in one)
