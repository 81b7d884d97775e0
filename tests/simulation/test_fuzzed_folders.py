"""Thousands of damaged run folders, by fixed seeds: every command reads one, or refuses it in one message."""

import random
import resource
import shutil
import sys
import time

import pytest

from fedactors.cli.main import main
from fedactors.report import watch
from tests.simulation.damage import damage
from tests.simulation.test_checkpoints import run, scenario_of

LONGEST = 20.0  # s of a processor: on a busy machine the wall clock also counts what others do
LARGEST = 2 * 10**6  # kB
SMALL = ("server.rounds=4", "server.cohort=2", "task.model=logistic")
READING = {"audit": (), "diff": ("{whole}",), "timeline": (), "watch": ()}
DRAWING = {"report": ()}
GOING_ON = {
    "resume": ("--fleet", "local"),
    "branch": ("--at", "round=1", "--fleet", "local", "--out", "{out}"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    run(scenario_of(*SMALL), path, stop_after=3)
    return path


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Let `watch` look again at once, and so find at once that nobody writes to the folder."""
    monkeypatch.setattr(watch, "_EVERY", 0.0)


def damaged_folder(whole, folder, seed):
    """Return a copy of a run folder that is damaged as `seed` says, and what was done to it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    return folder, damage(random.Random(seed), folder)


def try_all(commands, seeds, whole, tmp_path, capsys):
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # as the command line has them
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        for command, more in commands.items():
            broken, what = damaged_folder(whole, tmp_path / "broken", seed)
            shutil.rmtree(tmp_path / "out", ignore_errors=True)
            words = [word.format(whole=whole, out=tmp_path / "out") for word in more]
            begun = time.process_time()
            try:
                code = main([command, str(broken), *words])
            except Exception as error:
                raise AssertionError(f"seed {seed}, {what}: {command}") from error
            said = capsys.readouterr().err
            assert code in (0, 1, 2), (seed, what, command)
            assert "Traceback" not in said, (seed, what, command)
            assert len(said) < 5_000, (seed, what, command)
            assert time.process_time() - begun < LONGEST, (seed, what, command)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < LARGEST, "more memory than before, kB"


@pytest.mark.parametrize(("commands", "seeds"), [(READING, range(15)), (GOING_ON, range(3))], ids=["read", "go on"])
def test_some_damaged_folders(commands, seeds, whole, tmp_path, capsys):
    try_all(commands, seeds, whole, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_damaged_folders_that_are_read(part, whole, tmp_path, capsys):
    try_all(READING, range(1000 + 300 * part, 1300 + 300 * part), whole, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_damaged_folders_that_are_drawn_or_gone_on_with(part, whole, tmp_path, capsys):
    try_all(DRAWING | GOING_ON, range(10_000 + 100 * part, 10_100 + 100 * part), whole, tmp_path, capsys)
