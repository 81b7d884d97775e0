"""The batch files for Slurm in docs/cluster.md, on one machine, with stand-ins for `srun` and `scontrol`."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks

ALONE = ["unshare", "--pid", "--fork", "--mount-proc"]  # from others on this machine: theirs would be in the way
FILES = {block.file: block.text for block in blocks(ROOT / "docs/cluster.md") if block.file.endswith(".sbatch")}
QUICKSTART = str(ROOT / "scenarios/quickstart.yaml")
NO_GPU = "--set cluster.gpus_per_actor=0"


def placed(folder, name, fedactors):
    """Write a batch file into a folder, beside stand-ins; return its environment. `srun` notes its process."""
    (folder / name).write_text(FILES[name])
    (folder / "bin").mkdir()
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/activate").touch()
    stand_ins = {
        "srun": 'echo $$ > step.pid; exec "$@"\n',
        "scontrol": 'echo "$@" >> scontrol.txt; echo 127.0.0.1\n',
        "fedactors": fedactors,
    }
    for called, text in stand_ins.items():
        command = folder / "bin" / called
        command.write_text(f"#!/bin/bash\n{text}")
        command.chmod(0o755)
    path = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    slurm = {
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NODELIST": "here",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_CPUS_PER_TASK": "2",
        "SLURM_ARRAY_JOB_ID": "4700",
        "SLURM_ARRAY_TASK_ID": "3",
    }
    return {**os.environ, **slurm, "PATH": os.pathsep.join(path), "PYTHONPATH": str(ROOT)}


def fedactors(more):
    """Return a command that has further words for `run`; a run that goes on has them in its folder."""
    return f'[ "$1" = run ] && set -- "$@" {more}\nexec {sys.executable} -m fedactors "$@"\n'


@pytest.mark.parametrize("name", FILES)
def test_a_batch_file_is_sound(name, tmp_path):
    (tmp_path / name).write_text(FILES[name])
    done = subprocess.run(["bash", "-n", name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_batch_file_runs_a_scenario(tmp_path):
    if not shutil.which("unshare") or subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("processes cannot be kept apart here (unshare)")
    environment = placed(tmp_path, "fedactors.sbatch", fedactors("--set server.rounds=2 --actors 1"))
    done = subprocess.run(
        [*ALONE, "bash", "fedactors.sbatch", QUICKSTART],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "runs/4711/summary.json").read_text())["plans"] == 2


@pytest.mark.slow
def test_a_run_on_a_gpu_goes_on_after_its_time_limit(tmp_path):
    """Without a GPU. Slurm sends SIGTERM to the step, and starts a job that is requeued from the beginning."""
    environment = placed(tmp_path, "gpu.sbatch", fedactors(f"{NO_GPU} --set server.rounds=60"))
    command = ["bash", "gpu.sbatch", QUICKSTART]
    run, said = tmp_path / "runs/4711", tmp_path / "slurm.out"
    with said.open("w") as file:
        job = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=file, stderr=file)
        while job.poll() is None and (not (run / "metrics.jsonl").exists() or not (run / "metrics.jsonl").read_text()):
            time.sleep(0.05)
        os.kill(int((tmp_path / "step.pid").read_text()), signal.SIGTERM)
        assert job.wait(60) == 130, said.read_text()
    assert (tmp_path / "scontrol.txt").read_text() == "requeue 4711\n"
    before = json.loads((run / "summary.json").read_text())
    assert before["ended_because"] == "interrupted"
    assert 0 < before["plans"] < 60
    again = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    after = json.loads((run / "summary.json").read_text())
    assert (after["ended_because"], after["plans"]) == ("all rounds done", 60)


@pytest.mark.slow
def test_a_task_of_an_array_runs_its_seed(tmp_path):
    environment = placed(tmp_path, "seeds.sbatch", fedactors("--set server.rounds=2"))
    subprocess.run(["bash", "seeds.sbatch", QUICKSTART], cwd=tmp_path, env=environment, check=True)
    summary = json.loads((tmp_path / "runs/4700/3/summary.json").read_text())
    assert (summary["seed"], summary["plans"]) == (3, 2)


@pytest.mark.slow
def test_tasks_of_an_array_play_a_comparison_and_a_last_call_makes_its_tables(tmp_path):
    few = f'exec {sys.executable} -m fedactors "$@" --set server.rounds=2\n'
    environment = placed(tmp_path, "study.sbatch", few)
    for task in ("1", "2"):
        subprocess.run(
            ["bash", "study.sbatch", QUICKSTART],
            cwd=tmp_path, env={**environment, "SLURM_ARRAY_TASK_ID": task}, check=True,
        )  # fmt: skip
        assert not (tmp_path / "runs/study/runs.csv").exists()
    last = next(block.text for block in blocks(ROOT / "docs/cluster.md") if "sbatch study.sbatch" in block.text)
    words = last.splitlines()[1].replace("scenarios/quickstart.yaml", QUICKSTART).replace("--seeds 10", "--seeds 2")
    done = subprocess.run(
        ["bash", "-c", words], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )  # fmt: skip
    assert "2 variants, 2 seeds each" in done.stdout
    assert len((tmp_path / "runs/study/runs.csv").read_text().splitlines()) == 1 + 4
    assert len(list((tmp_path / "runs/study").glob("run-*"))) == 4
