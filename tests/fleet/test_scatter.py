"""Calls over a cluster: each result once, and one message for a call that cannot be made or ends its process."""

import os
import time

import pytest
import ray
from ray._private.internal_api import node_stats

from fedactors.errors import ClusterError, DataError
from fedactors.fleet.ray.ray_start import connected
from fedactors.fleet.ray.scatter import Call, scatter
from fedactors.study.run_folders import complete
from fedactors.study.runs import StudyRun, on_cluster
from tests.fleet.conftest import QUICKSTART

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _cluster():
    """Be connected to a Ray of two cores, which all calls use."""
    with connected(None, 2):
        yield


def work(number):
    if number == 1:
        raise DataError("one")
    if number == 2:
        os._exit(3)
    return 10 * number


def results(*numbers, cpus=1.0):
    return dict(scatter(work, [Call(f"run {number}", (number,), cpus) for number in numbers], None))


def test_each_result_comes_with_its_place():
    assert results(5, 3, 4, 7, 8, 9, 6) == {0: 50, 1: 30, 2: 40, 3: 70, 4: 80, 5: 90, 6: 60}


def test_what_no_node_has_is_refused_before_anything_is_called():
    with pytest.raises(ClusterError, match=r"^run 2 wants 10000 CPU and 0 GPU of one node \(found .*: 2 CPU, 0 GPU"):
        results(2, cpus=10_000)


def test_an_exception_is_raised_again():
    with pytest.raises(DataError, match=r"^one$"):
        results(1)


def test_a_call_that_ends_its_process_is_named():
    with pytest.raises(ClusterError, match=r"^run 2: WorkerCrashedError: .*run the study again"):
        results(3, 2)


def noted(number, folder):
    """Leave a file, and wait for that of another call; the first one fails."""
    (folder / str(number)).touch()
    if number == 0:
        until((folder / "1").exists)
        raise DataError("the first one")
    if number == 1:
        time.sleep(2)
    return number


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_calls_under_way_are_finished_when_one_fails(tmp_path):
    """Two at a time, and two more that wait at the cluster: the second result is had, and the last ones never begin."""
    found = []
    with pytest.raises(DataError, match=r"^the first one$"):
        found.extend(scatter(noted, [Call(f"run {k}", (k, tmp_path), 1.0) for k in range(20)], None))
    assert (1, 1) in found
    assert not {str(number) for number in range(8, 20)} & {path.name for path in tmp_path.iterdir()}


def large(number):
    return bytes(20_000_000)


def test_results_do_not_stay_in_the_object_store():
    """Of nine results of 20 MB, those alone that were not asked for: at most four calls are submitted at a time."""
    kept = []
    for _ in scatter(large, [Call(f"run {number}", (number,), 1.0) for number in range(9)], None):
        time.sleep(0.5)  # others end meanwhile
        kept.append(stored() / 20_000_000)
    assert max(kept) < 4.5, kept
    until(lambda: stored() < 20_000_000)


def stored():
    """Return how many bytes the object store holds."""
    (node,) = ray.nodes()
    address, port = node["NodeManagerAddress"], node["NodeManagerPort"]
    return node_stats(address, port, include_memory_info=False).store_stats.object_store_bytes_used


def test_runs_of_a_study_come_back_and_are_not_run_again(tmp_path):
    work = [StudyRun(QUICKSTART, ("server.cohort=5", f"server.rounds={rounds}"), tmp_path) for rounds in (3, 1, 2)]
    folders = list(on_cluster(work, "auto"))
    assert all(map(complete, folders))
    assert [len((folder / "metrics.jsonl").read_text().splitlines()) for folder in folders] == [3, 1, 2]
    times = [folder.stat().st_mtime_ns for folder in folders]
    assert list(on_cluster(work, "auto")) == folders
    assert [folder.stat().st_mtime_ns for folder in folders] == times
