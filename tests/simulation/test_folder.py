"""A run folder holds what the README says, readable without fedactors, and its numbers agree with one another."""

import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from safetensors.numpy import load_file

import fedactors
from fedactors import Scenario
from fedactors.errors import DivergedError
from fedactors.models.network import initial
from fedactors.run_files.tables import rows_of
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import replay
from tests.fleet.conftest import QUICKSTART

ROUNDS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    fedactors.run(Scenario.load(QUICKSTART, [f"server.rounds={ROUNDS}"]), path, fleet="local")
    return path


def test_the_summary_has_what_a_report_needs(folder):
    summary = json.loads((folder / "summary.json").read_text())
    wanted = "name seed plans virtual_seconds wall_seconds ended_because final asked outcomes steps bytes digests"
    assert set(wanted.split()) <= set(summary)
    assert set(summary["final"]) == {"accuracy", "loss"}
    assert set(summary["bytes"]) == {"down", "up"}
    assert all(len(summary["digests"][part]) == 64 for part in ("plans", "metrics", "model"))
    assert summary["ended_because"] == "all rounds done"
    assert sum(summary["outcomes"].values()) == summary["asked"]


def test_tables_lines_and_summary_agree(folder):
    summary = json.loads((folder / "summary.json").read_text())
    orders = pq.read_table(folder / "orders.parquet").to_pylist()
    plans = pq.read_table(folder / "plans.parquet").to_pylist()
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert len(plans) == len(rows) == summary["plans"] == ROUNDS
    assert len(orders) == sum(plan["asked"] for plan in plans) == sum(row["asked"] for row in rows) == summary["asked"]
    for outcome, count in summary["outcomes"].items():
        assert count == sum(order["outcome"] == outcome for order in orders)
        assert count == sum(row["outcomes"].get(outcome, 0) for row in rows)
    heard = [order for order in orders if order["outcome"] in ("complete", "partial")]
    assert sum(order["steps"] for order in heard) == summary["steps"]
    assert sum(order["down"] for order in orders) == summary["bytes"]["down"] == sum(row["bytes_down"] for row in rows)
    assert sum(order["up"] for order in orders) == summary["bytes"]["up"]
    assert plans[-1]["ready"] == round(summary["virtual_seconds"] * 1e9)
    assert rows[-1]["accuracy"] == summary["final"]["accuracy"]
    assert all(order["base"] == order["version"] for order in orders)


def test_the_scenario_kept_is_complete_and_runs_again_to_the_same_plans(folder):
    kept = yaml.safe_load((folder / "scenario.yaml").read_text())
    assert kept["server"]["evaluate_every"] == 1
    again = Scenario.model_validate(kept)
    again._folder = QUICKSTART.parent
    summary = json.loads((folder / "summary.json").read_text())
    assert replay(again).summary["digests"]["plans"] == summary["digests"]["plans"]


def test_the_model_is_safetensors(folder):
    assert load_file(folder / "checkpoint/model.safetensors")["x"].shape == (64 * 64 + 64 + 64 * 10 + 10,)


def test_a_replay_makes_the_plans_of_the_run(folder, tmp_path):
    scenario = Scenario.load(QUICKSTART, [f"server.rounds={ROUNDS}"])
    replay(scenario, tmp_path / "replay")
    for table in ("plans.parquet", "orders.parquet"):
        assert pq.read_table(tmp_path / "replay" / table).equals(pq.read_table(folder / table))


def test_a_run_that_diverges_says_who_and_when_and_keeps_what_it_had(tmp_path):
    scenario = Scenario.load(QUICKSTART, ["server.rounds=9", "server.schedule.lr=1e30", "server.evaluate_every=3"])
    with pytest.raises(DivergedError, match=r"round \d+ \(virtual time .*client \d+ from local step \d+"):
        fedactors.run(scenario, tmp_path / "run", fleet="local")
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["ended_because"] != "all rounds done"


def test_evaluation_can_be_rare_and_always_covers_the_last_round(tmp_path):
    scenario = Scenario.load(QUICKSTART, ["server.rounds=5", "server.evaluate_every=3"])
    result = fedactors.run(scenario, tmp_path / "run", fleet="local")
    assert ["accuracy" in row for row in result.metrics] == [False, False, True, False, True]


def test_a_round_that_nobody_completes_leaves_the_model_alone_under_scheme_a(tmp_path):
    """Everybody gets some steps done, nobody all of them: scheme A discards, scheme B does not."""
    changes = ["server.rounds=2", "server.deadline=2500ms", "server.local.epochs=500"]
    states, partial = {}, {}
    for scheme in "AB":
        scenario = Scenario.load(QUICKSTART, [*changes, f"server.participation={scheme}"])
        result = fedactors.run(scenario, tmp_path / scheme, fleet="local")
        states[scheme], partial[scheme] = result.state["x"], result.summary["outcomes"]
    start = initial(prepare(scenario).model, scenario.seed)
    assert partial["A"] == partial["B"]
    assert partial["A"]["partial"] > 0
    assert partial["A"]["complete"] == 0
    assert np.array_equal(states["A"], start)
    assert not np.array_equal(states["B"], start)


def test_writing_tables_imports_no_pandas_and_loses_nothing(tmp_path):
    """Where pandas is installed, `pyarrow.array` would import it, which takes a second of every start."""
    done = subprocess.run(
        [sys.executable, "-c", WRITING, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    columns = ("version", "outcome", "group", "arrived", "weight")
    assert list(rows_of(tmp_path / "t", columns)) == [
        (0, "complete", "", [], 0.5),
        (-1, "late", "Zürich", [3, 2], 1 / 3),
        (2**62, "complete", "b", [9], 0.0),
    ]


WRITING = """
import sys
from pathlib import Path
from fedactors.plan import OUTCOME_CODES as codes, Outcome
from fedactors.run_files.tables import ParquetTable
table = ParquetTable(Path(sys.argv[1]), ("version", "outcome", "group", "arrived", "weight"))
table.add((0, codes[Outcome.COMPLETE], "", (), 0.5))
table.add((-1, codes[Outcome.LATE], "Zürich", (3, 2), 1 / 3))
table.add((2**62, codes[Outcome.COMPLETE], "b", (9,), 0.0))
table.close()
print("pandas" in sys.modules)
"""
