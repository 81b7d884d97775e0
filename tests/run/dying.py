"""Plays a run in children that are killed with SIGKILL at random moments, and resumes it until it is done.

    python -m tests.run.dying FOLDER KILLS SEED KEY=VALUE…

Prints how many of the children died, and in which rounds. Each child is forked, so that a life costs no imports.
"""

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import fedactors
from fedactors import Scenario
from fedactors.run import checkpoint, conductor
from tests.fleet.conftest import QUICKSTART


def live(folder, changes):
    """Begin the run, or go on with it."""
    if checkpoint.checkpoints(folder):
        conductor.resume(folder, fleet="local", report=False)
    else:  # killed before it had begun
        shutil.rmtree(folder, ignore_errors=True)
        fedactors.run(Scenario.load(QUICKSTART, changes), folder, fleet="local", report=False)


def child(folder, changes):
    """Fork a child that lives; return its process id."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            live(folder, changes)
            code = 0
        finally:
            os._exit(code)
    return pid


def last(folder):
    """Return the round of the last checkpoint; -1 if there is none."""
    return max((int(path.name[6:]) for path in checkpoint.checkpoints(folder)), default=-1)


def first_round(folder, changes):
    """Let a child live until its first round is saved; return how many seconds that takes."""
    began, pid = time.monotonic(), child(folder, changes)
    while last(folder) < 1:
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return time.monotonic() - began


def wait(folder, pid, rounds, seconds):
    """Wait until a child has saved some rounds more, or has ended, and then some seconds."""
    wanted = last(folder) + rounds
    while rounds and last(folder) < wanted and not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(0.005)
    time.sleep(seconds)


def main(folder, kills, seed, *changes):
    folder, chance, reached = Path(folder), random.Random(int(seed)), []
    rounds = next(int(change.partition("=")[2]) for change in changes if change.startswith("server.rounds="))
    loading = first_round(folder, changes)
    while len(reached) < int(kills):
        pid, more = child(folder, changes), chance.randrange(2 * rounds // int(kills))
        wait(folder, pid, more, chance.uniform(0.0, 0.05 if more else loading))  # some do not live to their first round
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            assert os.waitstatus_to_exitcode(status) == 0, "a life ended by itself, and not well"
        reached.append(last(folder))
    _, status = os.waitpid(child(folder, changes), 0)
    assert os.waitstatus_to_exitcode(status) == 0
    print(*reached)


if __name__ == "__main__":
    main(*sys.argv[1:])
