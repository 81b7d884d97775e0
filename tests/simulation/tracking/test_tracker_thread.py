"""A tracker sees rounds in order; what it raises is one warning, and one that never answers is not waited for."""

import threading

import pytest

from fedactors.simulation.progress import Silent
from fedactors.simulation.tracking import tracked_progress, tracker_thread
from fedactors.simulation.tracking.tracked_progress import Tracked
from fedactors.simulation.tracking.tracker_thread import TrackerThread


class Remembering(Silent):
    """Progress that keeps its notes."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


class Recorder:
    """A tracker that keeps what it is told, and fails, or waits, when it is told of a round."""

    name = "recorder"

    def __init__(self, fails=None, waits=None):
        self.fails, self.waits, self.seen, self.free = fails, waits, [], threading.Event()

    def begin(self):
        self.seen.append("begin")

    def log(self, round, figures):
        if round == self.fails:
            raise OSError("no room")
        if round == self.waits:
            self.free.wait(60)
        self.seen.append((round, figures))

    def close(self):
        self.seen.append("close")


def played(*trackers, rounds=4):
    shown = Remembering()
    progress = Tracked(shown, trackers)
    with progress.over("run", rounds):
        for number in range(1, rounds + 1):
            progress.round({"round": number, "accuracy": number / 10})
    return shown.notes


def test_every_round_is_logged_in_order():
    recorder = Recorder()
    assert played(recorder) == []
    assert recorder.seen == ["begin", *((n, {"accuracy": n / 10}) for n in (1, 2, 3, 4)), "close"]


def test_a_tracker_that_fails_is_one_warning_and_the_others_go_on():
    broken, sound = Recorder(fails=2), Recorder()
    assert played(broken, sound) == [
        "recorder: OSError: no room; the run goes on, and is not logged there any more",
    ]
    assert broken.seen == ["begin", (1, {"accuracy": 0.1})]
    assert sound.seen[-1] == "close"


@pytest.mark.parametrize("begun", [True, False])
def test_a_tracker_that_never_answers_holds_up_nothing_but_the_end_and_that_not_for_long(begun, monkeypatch):
    monkeypatch.setattr(tracked_progress, "TrackerThread", lambda one: TrackerThread(one, patience=0.2))
    waiting = Recorder(waits=2 if begun else 1)
    assert played(waiting) == [
        "recorder: nothing was taken within 0 s (no answer, or errors on which its library tries again); the run goes"
        " on, and is not logged there any more"
    ]
    waiting.free.set()


def test_a_slow_tracker_is_waited_for_while_it_comes_back(monkeypatch):
    """Each round takes .05 s of a patience of .5 s; all 20 together take longer than that."""
    assert tracker_thread._PATIENCE >= 10
    monkeypatch.setattr(tracked_progress, "TrackerThread", lambda one: TrackerThread(one, patience=0.5))
    slow = Recorder()
    slow.log = lambda round, figures: (threading.Event().wait(0.05), slow.seen.append(round))
    assert played(slow, rounds=20) == []
    assert slow.seen == ["begin", *range(1, 21), "close"]
