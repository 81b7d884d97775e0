"""Portable bits: every library is held to AVX2 in every process, and what it is held to decides the bits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fedactors import bits

pytestmark = pytest.mark.skipif(not bits.available(), reason="this processor has no AVX2")

ROOT = Path(__file__).parents[1]
POPULATION = [{"name": "phones", "count": 6, "compute": {"per_sample": "10ms"}}]
LEVELS = """
import ctypes, json, sys
import fedactors
fedactors.Scenario
import numpy, torch
from threadpoolctl import threadpool_info
from fedactors import bits
blas = [one["architecture"] for one in threadpool_info() if one["internal_api"] == "openblas"]
print(json.dumps([torch.backends.cpu.get_cpu_capability(), blas, bits.late(), bits.made_with("portable")]))
"""
NETS = """
from torch import nn


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.Tanh(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(576, 10)
        )

    def forward(self, x):
        return self.layers(x.reshape(-1, 1, 8, 8))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 32, batch_first=True)
        self.out = nn.Linear(32, 10)

    def forward(self, x):
        return self.out(self.gru(x.reshape(-1, 8, 8))[0][:, -1])
"""


def environment(**changed):
    """Return this environment without what holds libraries to a level, and with what is `changed`."""
    return {key: value for key, value in os.environ.items() if key not in bits.variables()} | changed


def digests(scenario, folder, *words, **changed):
    """Return the digests of a run by the command line under a changed environment."""
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(scenario))
    (folder / "nets.py").write_text(NETS)
    out = folder / f"run-{len(list(folder.iterdir()))}"
    command = [sys.executable, "-m", "fedactors", "run", str(path), "--fleet", "local", "--out", str(out), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(**changed))
    assert done.returncode == 0, done.stderr
    return json.loads((out / "summary.json").read_text())["digests"], out


def scenario(model, optimizer="sgd", **server):
    local = {"epochs": 1, "batch": 8, "optimizer": optimizer}
    return {
        "name": "bits",
        "task": {
            "dataset": {"name": "digits"},
            "model": model,
            "partition": {"name": "iid"},
        },
        "population": POPULATION,
        "server": {
            "rounds": 2,
            "cohort": 3,
            "algorithm": "fedavg",
            "local": local,
            "schedule": {"name": "constant", "lr": 0.05},
            **server,
        },
    }


@pytest.mark.slow
def test_each_library_is_held_to_avx2():
    done = subprocess.run([sys.executable, "-c", LEVELS], capture_output=True, text=True, check=True, env=environment())
    torch, blas, late, made_with = json.loads(done.stdout)
    assert (torch, late) == ("AVX2", [])
    assert blas == ["Haswell"]
    assert made_with == {"bits": "portable", "instructions": "AVX2", "vendor": bits.vendor()}


@pytest.mark.slow
def test_a_library_that_was_used_before_is_named():
    code = "import torch; torch.ones(9).exp(); from fedactors import bits; bits.choose(); print(bits.late())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    expected = ["torch", "numpy"] if "avx512vl" in bits.flags() else []  # torch imports numpy
    assert done.stdout.strip() == str(expected)


def test_native_gives_back_what_the_user_had_set(monkeypatch):
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    monkeypatch.setattr(bits, "_before", {})
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    bits.choose("portable")
    assert os.environ["ATEN_CPU_CAPABILITY"] == "avx2"
    bits.choose("native")
    assert os.environ["ATEN_CPU_CAPABILITY"] == "default"
    assert "ONEDNN_MAX_CPU_ISA" not in os.environ
    bits.choose("portable")


WIDE = {
    "ATEN_CPU_CAPABILITY": "avx512",
    "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
    "MKL_CBWR": "AVX512",
    "OPENBLAS_CORETYPE": "SkylakeX",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        scenario({"name": "mlp", "hidden": [64]}),
        scenario({"name": "torch", "factory": "nets.py:Convolutional"}),
        scenario({"name": "torch", "factory": "nets.py:Recurrent"}),
        scenario({"name": "mlp", "hidden": [64]}, optimizer="adam"),
    ],
    ids=["dense", "convolutional", "recurrent", "adaptive"],
)
def test_portable_bits_are_those_of_a_processor_without_avx512(kind, tmp_path):
    held = bits.variables()
    portable, _ = digests(kind, tmp_path)
    assert digests(kind, tmp_path, **WIDE)[0] == portable
    narrow, _ = digests(kind, tmp_path, "--set", "cluster.bits=native", **held)
    assert narrow == portable
