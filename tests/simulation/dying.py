"""Plays a run in children that are killed with SIGKILL at random moments, and resumes it until it is done.

    python -m tests.simulation.dying FOLDER KILLS SEED KEY=VALUE…

Prints the round of the last checkpoint after each death. A life is forked from here, so that it costs no imports, and
tells of each round through a pipe: its end is an end of file, whatever it came by.
"""

import os
import random
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import pyarrow.parquet  # noqa: F401 - what a run imports late is imported once, here
import safetensors.numpy  # noqa: F401
import sklearn.datasets  # noqa: F401

import fedactors
from fedactors import Scenario
from fedactors.simulation import runner
from fedactors.simulation.progress import Silent
from fedactors.simulation.resume import checkpoint
from tests.fleet.conftest import QUICKSTART


class Life(Silent):
    """A child that begins the run, or goes on with it."""

    def __init__(self, folder, changes):
        self.folder, self.changes, self.began = folder, changes, time.monotonic()
        self.told, self.tell = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(self.tell)
            return
        os.close(self.told)
        code = 1
        try:
            self.live()
            code = 0
        finally:
            os._exit(code)

    def live(self):
        how = {"fleet": "local", "report": False, "progress": self}
        if checkpoint.checkpoints(self.folder):
            runner.resume(self.folder, **how)
        else:  # killed before it had begun
            shutil.rmtree(self.folder, ignore_errors=True)
            fedactors.run(Scenario.load(QUICKSTART, self.changes), self.folder, **how)

    def round(self, row):
        """Give a disk that is far behind some time, and tell the parent; if that is gone, this is the child's end."""
        if last(self.folder) < row["round"] - 3:
            time.sleep(0.05)
        os.write(self.tell, b".")

    def wait(self, rounds):
        """Wait until so many rounds more are saved, or the child has ended; return the seconds of its life."""
        wanted = last(self.folder) + rounds
        while last(self.folder) < wanted and os.read(self.told, 1):
            pass
        return time.monotonic() - self.began

    def linger(self, seconds):
        """Wait some seconds more, or until two further rounds are done: those of a busy machine take any time."""
        limit = time.monotonic() + seconds
        for _ in range(2):
            if not select.select([self.told], [], [], max(0.0, limit - time.monotonic()))[0]:
                break
            os.read(self.told, 1)

    def end(self):
        """Kill the child if it still lives; one that has ended must have come to the end of the run."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.told)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, -signal.SIGKILL), "a life ended by itself, and not well"
        return code


def last(folder):
    """Return the round of the last checkpoint; -1 if there is none."""
    return max((int(path.name[6:]) for path in checkpoint.checkpoints(folder)), default=-1)


def main(folder, kills, seed, *changes):
    folder, chance, reached = Path(folder), random.Random(int(seed)), []
    life = Life(folder, changes)
    loading, few = life.wait(2), life.wait(2)  # the first round is the second checkpoint
    life.end()
    for _ in range(int(kills)):
        life, rounds = Life(folder, changes), chance.randrange(4)
        life.wait(rounds)  # some do not live to their first round
        life.linger(chance.uniform(0.0, few - loading if rounds else loading))
        assert life.end() == -signal.SIGKILL, "the run came to its end too early: it needs more rounds"
        reached.append(last(folder))
    life = Life(folder, changes)
    life.wait(sys.maxsize)
    assert life.end() == 0
    print(*reached)


if __name__ == "__main__":
    main(*sys.argv[1:])
