"""The batch file for Slurm in docs/cluster.md, on one machine, with stand-ins for `srun` and `scontrol`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks

pytestmark = pytest.mark.slow

ALONE = ["unshare", "--pid", "--fork", "--mount-proc"]  # from others on this machine: theirs would be in the way
STAND_INS = {
    "srun": 'exec "$@"\n',
    "scontrol": "echo 127.0.0.1\n",
    "fedactors": f'exec {sys.executable} -m fedactors "$@" --set server.rounds=2 --actors 1\n',
}


def test_the_batch_file_runs_a_scenario(tmp_path):
    if not shutil.which("unshare") or subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("processes cannot be kept apart here (unshare)")
    (block,) = [block for block in blocks(ROOT / "docs/cluster.md") if block.file == "fedactors.sbatch"]
    (tmp_path / "fedactors.sbatch").write_text(block.text)
    (tmp_path / "bin").mkdir()
    for name, text in STAND_INS.items():
        command = tmp_path / "bin" / name
        command.write_text(f"#!/bin/bash\n{text}")
        command.chmod(0o755)
    path = [str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    slurm = {
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NODELIST": "here",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_CPUS_PER_TASK": "2",
    }
    done = subprocess.run(
        [*ALONE, "bash", "fedactors.sbatch", str(ROOT / "scenarios/quickstart.yaml")],
        cwd=tmp_path, env={**os.environ, **slurm, "PATH": os.pathsep.join(path), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "runs/4711/summary.json").read_text())["plans"] == 2
