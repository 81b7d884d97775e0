"""Studies that are stopped: complete seeds are compared, and no worker outlives the process that started it."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from fedactors.cli.main import main
from fedactors.study import runs
from fedactors.study.comparison import compare
from fedactors.study.running import StudyInterruptedError, StudyPace, by_seed, whole_seeds
from fedactors.study.study_cells import axis, crossed
from tests.cli.described import assert_described

ROOT = Path(__file__).parents[2]
RATES = {"server.schedule.lr": [0.1, 0.2, 0.3]}


def stopped_after(number, monkeypatch):
    """Let a study be interrupted when it begins with another run."""
    left = [number]

    def once(work, finished=runs.finished):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return finished(work)

    monkeypatch.setattr(runs, "finished", once)


def test_all_variants_of_a_seed_come_before_the_next_seed():
    cells = list(crossed([axis("x", [1, 2])], [9, 4]))
    assert [cells[k].labels for k in by_seed(cells)] == [
        (("x", 1), ("seed", 9)),
        (("x", 2), ("seed", 9)),
        (("x", 1), ("seed", 4)),
        (("x", 2), ("seed", 4)),
    ]
    assert whole_seeds(cells, dict.fromkeys([0, 2, 1])) == [0, 2]


def test_progress_is_told_as_a_person_reads_it():
    assert str(StudyPace(4, 10, 540.0)) == "4 of 10 done, about 9.0 min left"
    assert str(StudyPace(10, 10, 0.0)) == "10 of 10 done"


@pytest.mark.slow
def test_an_interrupted_comparison_tells_of_the_seeds_that_are_complete(scenario, tmp_path, monkeypatch, capsys):
    """Of three variants with three seeds, seven runs are done: those of two seeds, and one of the third."""
    stopped_after(7, monkeypatch)
    words = ["compare", str(scenario), "--vary", "server.schedule.lr=0.1,0.2,0.3", "--set", "server.rounds=1"]
    words += ["--seeds", "3", "--jobs", "1", "--out", str(tmp_path)]
    assert main([*words, "--json"]) == 130
    said = capsys.readouterr()
    assert "server.schedule.lr 0.3, seed 5: done (3 of 9 done, about " in said.err
    assert "interrupted after 7 of 9 runs" in said.err
    assert_described("compare", said.out)
    found = json.loads(said.out)["estimates"]
    assert {one["value"]["n"] for one in found if one["measure"] == "accuracy"} == {2}
    assert "3 variants, 2 seeds each" in (tmp_path / "comparison.txt").read_text()
    assert (tmp_path / "comparison.html").exists()


def test_an_interrupt_before_a_seed_is_complete_stays_one(scenario, tmp_path, monkeypatch):
    stopped_after(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt) as caught:
        compare(scenario, RATES, 3, out=tmp_path, overrides=["server.rounds=1"], jobs=1)
    assert not isinstance(caught.value, StudyInterruptedError)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_when_their_study_does(number, scenario, tmp_path):
    words = ["compare", str(scenario), "--vary", "server.schedule.lr=0.1,0.2,0.3", "--set", "server.rounds=100000"]
    command = [sys.executable, "-m", "fedactors", *words, "--seeds", "2", "--jobs", "2", "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    study = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    workers = []
    try:
        workers = until(lambda: running(study, tmp_path))
        study.send_signal(number)
        study.wait(20)
        gone, alive = psutil.wait_procs(workers, timeout=20)
        assert alive == []
        assert len(gone) >= 2
    finally:
        study.kill()
        study.wait()
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()


def running(study, folder):
    """Return the processes that a study started, once two of them have written rounds."""
    busy = [path for path in folder.glob("run-*/metrics.jsonl") if path.stat().st_size]
    return psutil.Process(study.pid).children(recursive=True) if len(busy) == 2 else []


def until(found, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if seen := found():
            return seen
        time.sleep(0.1)
    raise AssertionError("it never came to that")
