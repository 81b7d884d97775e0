"""Transforms, privacy, energy, departures and old models at once: the same bits on every fleet, killed and resumed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import fedactors
from fedactors import Scenario
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.runner import resume
from fedactors.simulation.verify import verify
from tests.fleet.test_ray import wait_until
from tests.simulation.test_checkpoints import assert_same

ROOT = Path(__file__).parents[2]
MIXED = ROOT / "scenarios/mixed-traffic.yaml"
PHONES, LAPTOPS, GUESTS = slice(0, 40), slice(40, 60), slice(60, 75)
EDGES = "[{name: north, cohort: 6, network: {up: 200 kB/s}}, {name: south, cohort: 6, deadline: 4s, network: {}}]"
TIERS = (
    "population.0.edge=north",
    "population.1.edge=south",
    "population.2.edge=south",
    f"server.timing={{name: hierarchical, edge_rounds: 2, edges: {EDGES}}}",
    "server.downlink=[{name: quantize, bits: 8, scale: max}]",
    "server.deadline=8s",
)
KINDS = pytest.mark.parametrize("changes", [(), TIERS], ids=["buffered", "tiers"])


def mixed(*changes):
    return Scenario.load(MIXED, ["cluster.checkpoint_every=1", *changes])


def finished(scenario, path):
    return fedactors.run(scenario, path, fleet="local", report=False)


def rows_of(folder):
    path = folder / "metrics.jsonl"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.slow
def test_what_the_scenario_is_for_happens_in_it(tmp_path):
    """Late models, departures, old updates and the end of the budget; and the records say so consistently."""
    summary = finished(mixed(), tmp_path / "run").summary
    assert summary["ended_because"] == "the budget of 8 kJ is spent"
    for outcome in ("complete", "partial", "offline", "departed", "stale", "cancelled"):
        assert summary["outcomes"][outcome] > 0, outcome
    assert summary["staleness"]["max"] > 3
    rows = [json.loads(line) for line in rows_of(tmp_path / "run")]
    epsilons = [row["epsilon"] for row in rows]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] > 0
    *before, last, _ = (row["joules"] for row in rows)  # the last row has what was under way and is cancelled
    assert sum(before) < 8000 <= sum(before) + last
    orders = pq.read_table(tmp_path / "run/orders.parquet").to_pandas()
    for group in (PHONES, LAPTOPS, GUESTS):
        assert orders[orders.client.between(group.start, group.stop - 1)].outcome.isin(["complete"]).any()
    assert audit(tmp_path / "run")["sound"]


@KINDS
def test_a_run_that_was_stopped_goes_on_with_the_same_bits(changes, tmp_path):
    scenario = mixed("server.rounds=18", "server.local.epochs=1", *changes)
    finished(scenario, tmp_path / "whole")
    fedactors.run(scenario, tmp_path / "broken", fleet="local", report=False, stop_after=7)
    resume(tmp_path / "broken", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "broken")
    assert audit(tmp_path / "broken")["sound"]


@pytest.mark.slow
@KINDS
def test_a_driver_that_is_killed_twice_comes_out_with_the_same_bits(changes, tmp_path):
    """Begun by hand, as a user does it: `run`, a SIGKILL, `resume`, another one, and `resume` to the end."""
    folder = tmp_path / "killed"
    sets = [part for change in ("cluster.checkpoint_every=1", *changes) for part in ("--set", change)]
    command = ["run", str(MIXED), *sets, "--out", str(folder)]
    for after in (6, 25):
        process = subprocess.Popen(
            [sys.executable, "-m", "fedactors", *command, "--fleet", "local"], stderr=subprocess.DEVNULL, cwd=ROOT
        )
        wait_until(lambda after=after: len(rows_of(folder)) >= after, seconds=300)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        command = ["resume", str(folder)]
    resume(folder, fleet="local", report=False)
    finished(mixed(*changes), tmp_path / "whole")
    assert_same(tmp_path / "whole", folder)
    assert audit(folder)["sound"]


@pytest.mark.slow
@KINDS
def test_digests_do_not_depend_on_the_number_of_actors(changes):
    assert verify(mixed("server.rounds=12", *changes))["equal"]
