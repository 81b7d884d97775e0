"""Calls over a cluster: results as calls end, and one message for a call that cannot be made or ends its process."""

import os
import time

import pytest

from fedactors.errors import ClusterError, DataError
from fedactors.fleet.ray.ray_start import connected
from fedactors.fleet.ray.scatter import Call, scatter

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


def test_each_result_comes_with_the_place_of_its_call():
    assert results(5, 3, 4) == {0: 50, 1: 30, 2: 40}


def test_what_no_node_has_is_refused_before_anything_is_called():
    with pytest.raises(ClusterError, match=r"^run 2 wants 10000 CPU and 0 GPU of one node \(found .*: 2 CPU, 0 GPU"):
        results(2, cpus=10_000)


def test_an_exception_is_raised_again():
    with pytest.raises(DataError, match=r"^one$"):
        results(1)


def test_a_call_that_ends_its_process_is_named():
    with pytest.raises(ClusterError, match=r"^run 2: WorkerCrashedError: .*run the study again"):
        results(3, 2)


def wait_for(path):
    while not path.exists():
        time.sleep(0.02)
    return "seen"


def apply(function, argument):
    return function(argument)


def test_a_call_that_fails_takes_nothing_from_those_that_end(tmp_path):
    """The second fails while the first is at work, which goes on until the third one's result is here."""
    seen = tmp_path / "seen"
    calls = [Call("first", (wait_for, seen), 1.0), Call("second", (work, 1), 1.0), Call("third", (work, 5), 1.0)]
    found = []

    def collect():
        for place, result in scatter(apply, calls, None):
            found.append((place, result))
            seen.touch()

    with pytest.raises(DataError, match=r"^one$"):
        collect()
    assert found == [(2, 50), (0, "seen")]
