"""A process that hangs is found, ended and its work done again; a fleet in which nothing moves says so, and ends."""

import json
import os
import signal
import subprocess

import pytest
import ray

import fedactors
from fedactors.errors import FleetError
from fedactors.fleet.ray import liveness
from fedactors.fleet.ray.watchdog import Process, Watchdog, Watched, end, processes
from fedactors.simulation.progress import Silent
from tests.fleet.test_ray import wait_until


def watched(pid, state="S", seconds=0.0):
    return Watched("ClientHost", "node", pid, Process(state, seconds))


class Clock:
    time = 0.0

    def __call__(self):
        return self.time


def test_who_is_stopped_in_two_looks_is_found():
    dog = Watchdog(300, Clock())
    assert dog.look([watched(1, "T"), watched(2)]) == []
    assert dog.look([watched(1, "T"), watched(2, "T")]) == [watched(1, "T")]
    assert dog.look([watched(1), watched(2, "T")]) == [watched(2, "T")]


def test_a_fleet_is_stuck_when_nobody_has_worked_for_long():
    clock = Clock()
    dog = Watchdog(60, clock)
    for clock.time in range(0, 100, 10):  # one works
        dog.look([watched(1, seconds=clock.time / 2), watched(2)])
        assert not dog.stuck()
    for clock.time in range(100, 170, 10):  # upkeep is no work
        dog.look([watched(1, seconds=45 + clock.time / 1000), watched(2)])
        assert dog.stuck() == (clock.time - 90 > 60)
    assert dog.stuck()
    dog.reset()
    assert not dog.stuck()


def test_the_times_are_those_of_the_page_on_faults():
    """An actor that is stopped is found in two looks, 20 s; a fleet in which nothing moves is left after 5 min."""
    assert (2 * liveness.LOOK_SECONDS, liveness._PATIENCE_SECONDS) == (20, 300)


def test_the_machine_tells_of_processes():
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        sleeper.send_signal(signal.SIGSTOP)
        wait_until(lambda: processes([sleeper.pid])[sleeper.pid].state == "T")
        assert str(Watched("Server", "here", sleeper.pid, processes([sleeper.pid])[sleeper.pid])).endswith("stopped")
        mine = processes([os.getpid(), 2**22 + 1])
        assert mine.keys() == {os.getpid()}
        assert mine[os.getpid()].seconds == pytest.approx(sum(os.times()[:2]), abs=0.5)
        end(sleeper.pid)
        assert sleeper.wait(10) == -signal.SIGKILL
        end(sleeper.pid)  # gone: nothing to do
    finally:
        sleeper.kill()


class Stopping(Silent):
    """Sends a signal to an actor of the run at a round."""

    def __init__(self, pipelines, at, which):
        self.pipelines, self.at, self.which, self.notes = pipelines, at, which, []

    def round(self, row):
        if row["round"] == self.at:
            actor = self.which(self.pipelines[-1]).actor
            os.kill(ray.get(actor.about.remote())["pid"], signal.SIGSTOP)

    def note(self, text):
        self.notes.append(text)


@pytest.mark.slow
@pytest.mark.parametrize("which", [lambda p: p.hosts[0], lambda p: p.server], ids=["host", "server"])
def test_a_stopped_actor_is_ended_and_its_work_done_again(which, scenario, tmp_path, pipelines, monkeypatch):
    monkeypatch.setattr(liveness, "LOOK_SECONDS", 1.0)
    calm = fedactors.run(scenario, tmp_path / "calm", fleet="local", report=False).summary["digests"]
    stopping = Stopping(pipelines, 3, which)
    result = fedactors.run(scenario, tmp_path / "stopped", actors=2, progress=stopping, report=False)
    assert result.summary["digests"] == calm
    rows = [json.loads(line) for line in (tmp_path / "stopped/faults.jsonl").read_text().splitlines()]
    assert rows[0]["cause"] == "HungActor"
    assert "stopped; ended by the watchdog" in rows[0]["text"]


@pytest.mark.slow
def test_a_fleet_that_is_stuck_ends_the_run_and_says_in_what_state_everybody_is(
    scenario, tmp_path, pipelines, monkeypatch
):
    monkeypatch.setattr(liveness, "LOOK_SECONDS", 1.0)
    monkeypatch.setattr(liveness, "_PATIENCE_SECONDS", 8.0)
    monkeypatch.setattr(liveness, "end", lambda pid: None)  # nobody ends what is stopped
    stopping = Stopping(pipelines, 3, lambda p: p.server)
    with pytest.raises(FleetError, match=r"(?s)nothing has moved for 8 s.*ServerWorker, process \d+ on \w+: stopped"):
        fedactors.run(scenario, tmp_path / "run", actors=1, progress=stopping, report=False)
