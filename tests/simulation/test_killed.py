"""Runs whose driver is killed, or whose disk is full, at any moment: resumed, they come out as if nothing had been."""

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

import fedactors
from fedactors.cli.main import main
from fedactors.simulation.resume import checkpoint
from fedactors.simulation.runner import resume
from tests.fleet.conftest import QUICKSTART
from tests.fleet.test_ray import wait_until
from tests.simulation.test_checkpoints import BUFFERED, assert_same, run, scenario_of

ROOT = Path(__file__).parents[2]


def lives(folder, kills, seed, changes):
    """Play a run in lives that are cut short; return the rounds that were saved at each death."""
    command = [sys.executable, "-m", "tests.simulation.dying", str(folder), str(kills), str(seed), *changes]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore::DeprecationWarning"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [int(word) for word in done.stdout.split()]


def changes_of(rounds, *more):
    small = ["server.cohort=12", "server.local.epochs=1"]
    return [*small, f"server.rounds={rounds}", "cluster.checkpoint_every=1", *more]


@pytest.mark.slow
def test_a_driver_killed_at_random_moments(tmp_path):
    changes = changes_of(12, "server.algorithm=scaffold")
    reached = lives(tmp_path / "killed", 2, 3, changes)
    assert len(reached) == 2
    assert reached == sorted(reached)  # no death loses a checkpoint
    run(scenario_of(*changes), tmp_path / "whole")
    assert_same(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("server.algorithm=feddyn",), BUFFERED], ids=["fedavg", "feddyn", "buffered"])
def test_a_driver_killed_at_thirty_random_moments(more, tmp_path):
    changes = changes_of(300, *more)
    reached = lives(tmp_path / "killed", 30, 11, changes)
    assert len(reached) == 30
    assert reached == sorted(reached)
    assert len(set(reached)) > 10  # they died in many different rounds
    run(scenario_of(*changes), tmp_path / "whole")
    assert_same(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.slow
def test_a_driver_of_ray_killed_leaves_no_process_behind_and_is_resumed(tmp_path):
    folder, changes = tmp_path / "killed", changes_of(12)
    options = [part for change in changes for part in ("--set", change)]
    command = [sys.executable, "-m", "fedactors", "run", str(QUICKSTART), *options, "--actors", "2"]
    command += ["--out", str(folder)]
    for after in (2, 5, 9):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_until(lambda after=after: len(lines(folder)) >= after, seconds=300)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.wait()
        # two agents of Ray wait a minute for its services before they give up
        wait_until(lambda children=children: not any(map(alive, children)), seconds=180)
        command = [sys.executable, "-m", "fedactors", "resume", str(folder), "--actors", "2"]
    resume(folder, actors=1, report=False)
    run(scenario_of(*changes), tmp_path / "whole")
    assert_same(tmp_path / "whole", folder)


@pytest.mark.slow
def test_a_run_of_ray_is_not_disturbed_by_another_that_is_killed_beside_it(tmp_path):
    changes = changes_of(12)
    options = [part for change in changes for part in ("--set", change)]
    command = [sys.executable, "-m", "fedactors", "run", str(QUICKSTART), *options, "--actors", "1", "--out"]
    endless = [*command, str(tmp_path / "other"), "--set", "server.rounds=100000"]
    other, one = (
        subprocess.Popen(line, stderr=subprocess.DEVNULL) for line in (endless, [*command, str(tmp_path / "one")])
    )
    wait_until(lambda: min(len(lines(tmp_path / "other")), len(lines(tmp_path / "one"))) >= 1, seconds=240)
    other.kill()
    other.wait()
    assert one.wait(timeout=240) == 0
    run(scenario_of(*changes), tmp_path / "whole")
    assert_same(tmp_path / "whole", tmp_path / "one")


def lines(folder):
    path = folder / "metrics.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def alive(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def little_room():
    """Let no file grow beyond a size, as on a full disk: writing more fails with EFBIG."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_disk_that_is_full_ends_the_run_and_loses_no_checkpoint(tmp_path, little_room, capsys):
    """A checkpoint of this model takes 19 kB, its clients 12 times that: they do not fit any more."""
    changes = changes_of(6, "server.algorithm=scaffold")
    run(scenario_of(*changes), tmp_path / "whole")
    run(scenario_of(*changes), tmp_path / "full", stop_after=2)
    before = checkpoint.checkpoints(tmp_path / "full")
    little_room(150_000)
    assert main(["resume", str(tmp_path / "full"), "--fleet", "local"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"fedactors: {tmp_path / 'full'}")
    assert "File too large" in said
    assert checkpoint.checkpoints(tmp_path / "full") == before
    assert checkpoint.load(tmp_path / "full").plans == 2
    little_room(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    resume(tmp_path / "full", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "full")


def test_a_disk_that_is_full_in_the_middle_of_a_line_loses_no_checkpoint(tmp_path, little_room, capsys):
    """No other file is as long as metrics after so many rounds: a checkpoint would fit."""
    changes = changes_of(84, "server.cohort=2", "task.model={name: logistic}", "cluster.checkpoint_every=none")
    run(scenario_of(*changes), tmp_path / "whole")
    run(scenario_of(*changes), tmp_path / "full", stop_after=80)
    little_room((tmp_path / "full/metrics.jsonl").stat().st_size + 100)
    assert main(["resume", str(tmp_path / "full"), "--fleet", "local"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"fedactors: {tmp_path / 'full'}")
    assert "File too large" in said
    little_room(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    assert checkpoint.load(tmp_path / "full").plans == 80
    resume(tmp_path / "full", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "full")


def test_two_runs_at_once_in_one_process_do_not_disturb_each_other(tmp_path):
    """Each in a thread of its own: no signal handlers, no state that is shared."""
    changes = changes_of(5)
    threads = [threading.Thread(target=run, args=(scenario_of(*changes), tmp_path / str(k))) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fedactors.run(scenario_of(*changes), tmp_path / "alone", fleet="local", report=False)
    for k in range(2):
        assert_same(tmp_path / "alone", tmp_path / str(k))
