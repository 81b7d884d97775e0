"""Run folders to report on: one of a run, one of a replay, and made-up ones of any size."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedactors.run_files.records import OUTCOMES
from fedactors.scenario.model import Scenario
from fedactors.simulation.replay import replay
from fedactors.simulation.runner import run

SECOND = 1_000_000_000
HOSTILE = '<img src=x onerror="document.title=1"></script><script>alert(1)</script>'

SCENARIO = """
name: tiny
seed: 5
task: {dataset: digits, model: {name: mlp, hidden: [8]}, partition: {name: classes, classes: 2}}
population:
  - name: GROUP
    count: 12
    compute: {per_sample: 60ms, spread: 0.7}
    network: {down: 400 kB/s, up: 80 kB/s, latency: 100ms, spread: 0.6}
  - {name: naive, count: 8, deadline_aware: false, compute: {per_sample: 90ms, spread: 0.5}}
server: {rounds: 6, cohort: 10, deadline: 5s, local: {epochs: 3, batch: 5}}
"""


@pytest.fixture(scope="session")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "tiny.yaml"
    path.write_text(SCENARIO.replace("GROUP", json.dumps(HOSTILE)), encoding="utf-8")
    return Scenario.load(path)


@pytest.fixture(scope="session")
def finished(scenario, tmp_path_factory):
    """Return the folder of a run, with a fault that was mended."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    run(scenario, folder, fleet="local")
    fault = {"round": 2, "cause": "ActorDiedError", "died": True, "text": HOSTILE}
    (folder / "faults.jsonl").write_text(json.dumps(fault) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def replayed(scenario, tmp_path_factory):
    """Return the folder of a replay."""
    folder = tmp_path_factory.mktemp("replays") / "replay"
    replay(scenario, folder)
    return folder


def made_up(folder, *, rounds, cohort, devices):
    """Write the records of `rounds` rounds of a minute with `cohort` of `devices` devices each."""
    folder.mkdir(parents=True)
    draw, count = np.random.default_rng(1), rounds * cohort
    version = np.repeat(np.arange(rounds), cohort)
    outcome = draw.integers(0, len(OUTCOMES), count)
    started = version * 60 * SECOND
    times = started[:, None] + np.cumsum(draw.integers(1, 15 * SECOND, (count, 3)), axis=1)
    orders = {
        "version": version, "client": draw.integers(0, devices, count), "base": version,
        "wanted": np.full(count, 20), "steps": draw.integers(0, 21, count),
        "outcome": pa.DictionaryArray.from_arrays(pa.array(outcome.astype(np.int8)), pa.array(OUTCOMES)),
        "started": started, "downloaded": times[:, 0], "computed": times[:, 1], "finished": times[:, 2],
        "down": np.full(count, 1000), "up": np.full(count, 1000),
    }  # fmt: skip
    pq.write_table(pa.table(orders), folder / "orders.parquet")
    _plans(folder, rounds, cohort)
    (folder / "scenario.yaml").write_text(f"name: made-up\npopulation: [{{name: all, count: {devices}}}]\n")
    with (folder / "metrics.jsonl").open("w") as file:
        for row in range(rounds):
            counts = np.bincount(outcome[row * cohort : (row + 1) * cohort], minlength=len(OUTCOMES))
            file.write(json.dumps(_row(row, counts.tolist(), cohort)) + "\n")
    return folder


def _plans(folder, rounds, cohort):
    opened = np.arange(rounds) * 60 * SECOND
    moves = pa.array([[row] if row % 10 == 3 else [] for row in range(rounds)], pa.list_(pa.int64()))
    plans = {
        "version": np.arange(rounds), "opened": opened, "closed": opened + 60 * SECOND, "ready": opened + 60 * SECOND,
        "asked": np.full(rounds, cohort), "heard": np.zeros(rounds, np.int64), "arrived": moves, "departed": moves,
    }  # fmt: skip
    pq.write_table(pa.table(plans), folder / "plans.parquet")


def _row(row, counts, cohort):
    return {
        "round": row + 1, "virtual_seconds": 60.0 * (row + 1), "wall_seconds": 0.1 * row, "asked": cohort,
        "heard": counts[0] + counts[1], "outcomes": dict(zip(OUTCOMES, counts, strict=True)), "steps": 10,
        "bytes_down": 1000 * cohort, "bytes_up": 500 * cohort, "accuracy": 1 - 1 / (row + 2), "loss": 1 / (row + 1),
    }  # fmt: skip
