"""What a run leaves that is killed, or fails, in the middle of something: nothing that passes for what it is not."""

import json
import os

import pytest

from fedactors import Scenario
from fedactors.report import html
from fedactors.run_files.records import read
from fedactors.simulation.record.run_folder import RunFolder
from fedactors.simulation.replay import replay
from tests.fleet.conftest import QUICKSTART

TABLES = ("plans", "orders", "weights", "stages", "wall", "windows")


@pytest.fixture
def replayed(tmp_path):
    replay(Scenario.load(QUICKSTART, ["server.rounds=6", "server.cohort=5"]), tmp_path / "run")
    return tmp_path / "run"


def dies_in(life):
    """Have a child do something and die without an end."""
    if not (child := os.fork()):
        try:
            life()
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("rounds", [0, 3])
def test_tables_of_a_former_end_do_not_stand_beside_fewer_rounds(replayed, rounds):
    for name in TABLES:
        (replayed / f"{name}.parquet").touch()
    lines = (replayed / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    scenario = Scenario.load(replayed / "scenario.yaml")
    dies_in(lambda: RunFolder(replayed, scenario, past=sum(map(len, lines[:rounds]))))
    assert not [name for name in TABLES if (replayed / f"{name}.parquet").exists()]
    found = read(replayed)
    assert found.rounds == rounds
    assert not len(found.orders["version"])


def test_a_report_of_tables_without_rounds_is_drawn(replayed):
    (replayed / "metrics.jsonl").write_bytes(b"")
    (replayed / "summary.json").unlink()
    html.write(replayed)
    assert "<html" in (replayed / "report.html").read_text()
