"""Processes of a study: one that fails lets the others finish, and one that is ended by the system is told of."""

import os
import signal
import threading
import time

import pytest

from fedactors.errors import DataError, FleetError
from fedactors.study.worker_processes import each, ends_told


@pytest.mark.parametrize(("function", "work"), [(os._exit, [9, 9]), (signal.raise_signal, [signal.SIGKILL] * 2)])
def test_a_worker_that_is_ended_is_told_in_a_sentence(function, work):
    with pytest.raises(FleetError, match=r"was ended by the system, as it does where memory runs out.*--jobs"):
        list(each(function, work, 2))


def test_other_errors_stay_as_they_are():
    with pytest.raises(ZeroDivisionError), ends_told():
        print(1 / 0)
    with pytest.raises(TypeError):
        list(each(len, [1, 2], 2))


def failing(place):
    """Fail at once, or leave a file after a while."""
    folder, number, seconds = place
    if number == 0:
        until((folder / "begun-1").exists)
        raise DataError("one variant is broken")
    (folder / f"begun-{number}").touch()
    time.sleep(seconds)
    (folder / f"done-{number}").touch()
    return number


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def done(folder):
    return sorted(path.name for path in folder.glob("done-*"))


@pytest.mark.slow
def test_runs_that_go_on_are_finished_when_one_fails_and_no_other_begins(tmp_path):
    with pytest.raises(DataError, match="one variant is broken"):
        list(each(failing, [(tmp_path, number, 1.5) for number in range(6)], 2))
    assert done(tmp_path) == ["done-1"]


@pytest.mark.slow
def test_an_interrupt_while_others_are_finished_ends_them_and_the_failure_is_told(tmp_path):
    """Ctrl-C while the work that goes on is waited for: it is ended, and the error that was the first is raised."""
    threading.Thread(target=interrupt, args=[tmp_path]).start()
    with pytest.raises(DataError, match="one variant is broken"):
        list(each(failing, [(tmp_path, number, 30) for number in range(2)], 2))
    assert done(tmp_path) == []


def interrupt(folder):
    until((folder / "begun-1").exists)
    time.sleep(3)
    os.kill(os.getpid(), signal.SIGINT)


def slow(place):
    folder, number = place
    if number:
        time.sleep(30)
    (folder / f"done-{number}").touch()
    return number


def test_all_are_ended_at_once_when_nobody_wants_the_rest(tmp_path):
    results, began = each(slow, [(tmp_path, number) for number in range(2)], 2), time.monotonic()
    assert next(results) == 0
    results.close()
    assert time.monotonic() - began < 25
    assert done(tmp_path) == ["done-0"]
