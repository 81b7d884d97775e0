"""The script for GPUs works where there is none, at sizes that measure nothing."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from benchmarks import gpu
from tests.docs.blocks import ROOT

WITHOUT = ("ray", "simpy", "yaml", "pyarrow", "scipy", "sklearn", "torchvision", "safetensors", "rich")


@pytest.mark.slow
def test_every_job_is_measured_in_every_precision_of_the_device(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("FEDACTORS_DATA", raising=False)
    assert gpu.main(["--device", "cpu", "--tiny", "--seconds", "0", "--out", str(tmp_path / "rows")]) == 0
    rows = [json.loads(text) for text in (tmp_path / "rows").read_text().splitlines()]
    assert [(row["job"], row["precision"]) for row in rows] == [
        (job.name, precision) for job in gpu.JOBS for precision in ("fp32", "bf16")
    ]
    for row in rows:
        assert min(row["steps_per_second"], row["shuffled_once"]) > 0
        # convolutions of many clients round otherwise, and an activation at its kink may go the other way
        exact = 1e-2 if row["job"] == "cnn" else 1e-5
        assert row["apart"] < (exact if row["precision"] == "fp32" else 0.2)
        assert sum(row["chunks"]) == row["cohort"] == 6
    out = capsys.readouterr().out
    assert "not a GPU" in out
    assert out.count("only on GPUs") == len(gpu.JOBS)


@pytest.mark.slow
def test_hosts_that_share_a_device_are_measured_together(tmp_path):
    only = ["--jobs", "logistic", "--precisions", "fp32", "--hosts", "2", "--seconds", "0"]
    assert gpu.main(["--device", "cpu", "--tiny", *only, "--out", str(tmp_path / "rows")]) == 0
    alone, together = (json.loads(text) for text in (tmp_path / "rows").read_text().splitlines())
    assert "hosts" not in alone
    assert together["hosts"] == 2
    assert together["steps_per_second"] > 0


@pytest.mark.slow
def test_a_host_that_fails_says_why_and_keeps_nobody_waiting():
    options = SimpleNamespace(hosts=2, tiny=True, device="abacus", seconds=0.0)
    with pytest.raises(RuntimeError, match="abacus"):
        gpu.shared(gpu.JOBS[0].tiny(), options)


def test_the_targets_are_for_cohorts_of_their_size():
    assert [(job.name, job.clients, job.batch, job.target) for job in gpu.JOBS] == [
        ("logistic", 1000, 20, 5.4e6),
        ("mlp", 1000, 10, 330e3),
        ("cnn", 100, 10, 9.8e3),
    ]
    assert [job.model.build(job.shape, 10).parameters for job in gpu.JOBS] == [610, 159_010, 545_098]


@pytest.mark.slow
@pytest.mark.parametrize(("missing", "said"), [((), "logistic  fp32"), (("pydantic",), "pydantic is missing")])
def test_it_needs_torch_numpy_and_pydantic_only(missing, said):
    block = f"import sys, runpy; sys.modules.update(dict.fromkeys({(*WITHOUT, *missing)})); sys.argv[1:] = sys.argv[2:]"
    script = ROOT / "benchmarks/gpu.py"
    options = ["--device", "cpu", "--tiny", "--seconds", "0", "--jobs", "logistic", "--precisions", "fp32"]
    call = [sys.executable, "-c", f"{block}; runpy.run_path({str(script)!r}, run_name='__main__')", "-", *options]
    run = {"capture_output": True, "text": True, "timeout": 120, "cwd": "/", "env": {"OMP_NUM_THREADS": "1"}}
    done = subprocess.run(call, check=False, **run)
    assert said in done.stdout + done.stderr
    assert done.returncode == bool(missing)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so(capsys):
    assert gpu.main([]) == 2
    assert "no GPU here (accepted: --device cpu --tiny)" in capsys.readouterr().err
