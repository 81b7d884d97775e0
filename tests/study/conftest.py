"""A scenario that is small, and a comparison of it that all tests look at."""

import pytest

from fedactors.study.comparison import compare

SCENARIO = """
name: tiny
seed: 5
task: {dataset: digits, model: logistic, partition: {name: classes, classes: 2}}
population:
  - name: phones
    count: 20
    availability: {name: synthetic, mean_on: 20min, mean_off: 20min}
    compute: {per_sample: 60ms, spread: 0.7}
    network: {down: 400 kB/s, up: 8 kB/s, latency: 100ms, spread: 0.6}
    energy: {per_step: 1 J}
server: {rounds: 4, cohort: 6, deadline: 5s, local: {epochs: 2, batch: 5}, data: {name: iid, samples: 40},
  schedule: {name: constant, lr: 0.1}}
sweep:
  grid:
    server.schedule.lr: [0.01, 0.1]
    server.local.epochs: [1, 2]
  list:
    - {label: FL, set: {server.algorithm: fedavg, server.participation: uniform}}
    - {label: FSL, set: {server.algorithm: fsl}}
  seeds: 2
"""


@pytest.fixture(scope="session")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "tiny.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    """Return the folder of all runs: tests share those they have in common."""
    return tmp_path_factory.mktemp("studies") / "tiny"


@pytest.fixture(scope="session")
def comparison(scenario, out):
    vary = {"server.algorithm": ["fedavg", "fsl", "scaffold"]}
    return compare(scenario, vary, 3, out=out, overrides=["server.participation=uniform"], jobs=1)
