"""The scenarios of examples/own: the same bits on every fleet and after a stop, and with the algorithms that fit."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fedactors import Scenario, run
from fedactors.run_files.files import lines_of
from fedactors.simulation.runner import resume
from fedactors.simulation.verify import FLEETS, verify
from tests.conftest import SHARED

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples/own"
NEEDS = {"lstm-text": "tinyshakespeare/input.txt", "resnet18-cifar10": "cifar10"}  # in FEDACTORS_DATA
QUICK = ("batch-norm", "two-inputs")  # the others take minutes together
MEASURE = {"lstm-text": "perplexity", "diabetes-csv": "rmse", "multi-label": "auroc", "two-inputs": "auroc"}

SERVER_DATA = "server.data={name: iid, samples: %d}"
ALGORITHMS = {
    "fsl": ("server.algorithm={name: fsl, server_steps: 2, server_batch: 8}", SERVER_DATA),
    "scaffold": ("server.algorithm=scaffold",),
    "mixed-2w": ("server.algorithm={name: mixed-2w, merge_lr: 0.5}", SERVER_DATA),
    "fed-lamb": ("server.algorithm=fed-lamb", "server.schedule.lr=0.01"),
    "fedbuff": ("server.timing={name: fedbuff, concurrency: 4, buffer: 2}", "server.cohort=all"),
}
LEFT_OUT: dict[tuple[str, str], str] = {}  # (example, algorithm): why they do not go together
SAMPLES = {"resnet18-cifar10": 20}  # of the server; 40 elsewhere


def names(*, quick):
    return [
        name for name in sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()) if (name in QUICK) is quick
    ]


both = pytest.mark.parametrize(
    "name", [*names(quick=True), *(pytest.param(name, marks=pytest.mark.slow) for name in names(quick=False))]
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a function that copies an example and lets its Python file make what it needs, once each."""
    root, made = tmp_path_factory.mktemp("own"), {}

    def folder(name):
        if name not in made:
            made[name] = shutil.copytree(EXAMPLES / name, root / name)
            (code,) = made[name].glob("*.py")
            if "__main__" in code.read_text():
                subprocess.run([sys.executable, code.name], cwd=made[name], check=True)
        return made[name]

    return folder


@pytest.fixture
def example(folders, monkeypatch):
    """Return a function that loads an example with two rounds."""
    monkeypatch.setenv("FEDACTORS_DATA", str(SHARED / "data"))

    def loaded(name, *overrides):
        needed = SHARED / "data" / NEEDS.get(name, "")
        if name in NEEDS and not needed.exists():
            pytest.skip(f"no {needed} (set FEDACTORS_SHARED)")
        return Scenario.load(folders(name) / "scenario.yaml", ["server.rounds=2", *overrides])

    return loaded


def played(scenario, folder, **options):
    return run(scenario, folder, fleet="local", report=False, **options)


def test_an_example_is_two_files():
    for folder in (path for path in EXAMPLES.iterdir() if path.is_dir()):
        kinds = sorted(path.suffix for path in folder.iterdir() if path.name != "__pycache__")
        assert kinds == [".py", ".yaml"], folder
        assert "fedactors" not in next(folder.glob("*.py")).read_text().replace("FEDACTORS_DATA", "")


@both
def test_a_run_that_was_stopped_goes_on_with_the_same_bits(example, tmp_path, name):
    whole = played(example(name), tmp_path / "whole")
    assert np.isfinite(whole.metrics[-1]["loss"])
    assert np.isfinite(whole.metrics[-1][MEASURE.get(name, "accuracy")])
    played(example(name), tmp_path / "cut", stop_after=1)
    assert resume(tmp_path / "cut", fleet="local", report=False).summary["digests"] == whole.summary["digests"]


@both
@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=[pytest.mark.slow] * (name != "scaffold")) for name in ALGORITHMS]
)
def test_algorithms_go_with_it(example, tmp_path, name, algorithm):
    if reason := LEFT_OUT.get((name, algorithm)):
        pytest.skip(reason)
    samples = SAMPLES.get(name, 40)
    overrides = [change % samples if change is SERVER_DATA else change for change in ALGORITHMS[algorithm]]
    whole = played(example(name, *overrides), tmp_path / "whole")
    plain = played(example(name), tmp_path / "plain")
    assert np.isfinite(whole.state["x"]).all()
    assert not np.array_equal(whole.state["x"], plain.state["x"]), "the algorithm changes something"
    played(example(name, *overrides), tmp_path / "cut", stop_after=1)
    assert resume(tmp_path / "cut", fleet="local", report=False).summary["digests"] == whole.summary["digests"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*names(quick=True), *names(quick=False)])
def test_bits_are_the_same_on_every_fleet(example, name):
    found = verify(example(name), FLEETS)
    assert found["equal"], found["runs"]


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_the_same_bits(example, folders, tmp_path):
    changes = ["server.rounds=60", "cluster.checkpoint_every=1"]
    folder, scenario = tmp_path / "killed", folders("batch-norm") / "scenario.yaml"
    options = [word for change in changes for word in ("--set", change)]
    command = [
        sys.executable,
        "-m",
        "fedactors",
        "run",
        str(scenario),
        "--fleet",
        "local",
        *options,
        "--out",
        str(folder),
    ]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 120
    while not (folder / "metrics.jsonl").exists() or len(lines_of(folder / "metrics.jsonl")) < 5:
        assert time.monotonic() < limit
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = resume(folder, fleet="local", report=False)
    whole = played(example("batch-norm", *changes), tmp_path / "whole")
    assert found.summary["digests"] == whole.summary["digests"]
