"""Processes of a run on Ray are killed at random moments, all kinds of them: no bit changes, every death is told."""

import json
import os
import random
import signal
import threading

import psutil
import pytest
import ray

import fedactors
from fedactors.simulation.progress import Silent
from tests.fleet.test_central import scenario
from tests.fleet.test_ray import wait_until

pytestmark = pytest.mark.slow

VICTIMS = {
    "first host": lambda pipeline: pipeline.hosts[0],
    "second host": lambda pipeline: pipeline.hosts[1],
    "server": lambda pipeline: pipeline.server,
    "evaluator": lambda pipeline: pipeline.evaluator,
    "central learner": lambda pipeline: pipeline.central[0],
}
CAUSES = ("ActorDiedError", "ActorUnavailableError")
ROUND_SECONDS = 0.05  # about; deaths are spread over such a time after the end of a round


class Chaos(Silent):
    """Kills every kind of process `each` times, in random order, one or two at once, when the last death is known."""

    def __init__(self, pipelines, faults, each, seed):
        self.pipelines, self.faults, self.chance, self.killed = pipelines, faults, random.Random(seed), []
        self.victims = list(VICTIMS) * each
        self.chance.shuffle(self.victims)

    def round(self, row):
        if len(self.killed) == len(rows_of(self.faults)) and self.chance.random() < 0.5:
            for name in dict.fromkeys(self.victims[len(self.killed) :][: self.chance.choice([1, 1, 2])]):
                victim = ray.get(VICTIMS[name](self.pipelines[-1]).actor.about.remote())["pid"]
                self.killed.append(name)
                threading.Timer(self.chance.uniform(0, ROUND_SECONDS), os.kill, (victim, signal.SIGKILL)).start()


def rows_of(faults):
    return [json.loads(line) for line in faults.read_text().splitlines()] if faults.exists() else []


@pytest.mark.parametrize(("algorithm", "each", "rounds"), [("mixed-1w", 1, 80), ("mixed-pt", 10, 1000)])
def test_processes_killed_at_random_moments_change_no_bit(algorithm, each, rounds, tmp_path, pipelines):
    """With two chunks no host is idle; no more rounds are played than it takes for all to be killed, and some."""
    made = scenario(algorithm, rounds=rounds, cohort=8)
    calm = fedactors.run(made, tmp_path / "calm", fleet="local", report=False)
    chaos = Chaos(pipelines, tmp_path / "chaos/faults.jsonl", each, seed=5)
    result = fedactors.run(made, tmp_path / "chaos", actors=2, progress=chaos, report=False)
    assert result.summary["digests"] == calm.summary["digests"]
    assert sorted(chaos.killed) == sorted(list(VICTIMS) * each)
    assert len(rows_of(chaos.faults)) == len(chaos.killed)
    assert all(fault["died"] and fault["cause"] in CAUSES for fault in rows_of(chaos.faults))


class Idle(Silent):
    """Kills a host that has nothing to do in a run of one chunk, and waits until it is dead."""

    def __init__(self, pipelines):
        self.pipelines = pipelines

    def round(self, row):
        if row["round"] == 2:
            idle = self.pipelines[-1].hosts[1]
            victim = psutil.Process(ray.get(idle.actor.about.remote())["pid"])
            victim.kill()
            wait_until(lambda: not victim.is_running() or victim.status() == psutil.STATUS_ZOMBIE)


def test_the_death_of_a_process_that_was_not_needed_is_told_at_the_end(tmp_path, pipelines):
    made = scenario("mixed-pt", rounds=4)
    fedactors.run(made, tmp_path / "run", actors=2, progress=Idle(pipelines), report=False)
    (fault,) = rows_of(tmp_path / "run/faults.jsonl")
    assert fault["died"]
    assert fault["cause"] in CAUSES
    assert fault["round"] == 4
