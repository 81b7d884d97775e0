"""The job in fedactors: a scenario with devices that are always on and no deadline, run by the library's `run`.

The samples come through an entry point, as a third party's data set would. Speed is read off the run folder: the
`wall_seconds` of metrics.jsonl, from the end of the first round to the end of the last but one. One round more is run
than the peers are asked for, as the last one also evaluates and writes a checkpoint, which the peers do not do there.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from common import Job, arguments, process_age, report
from jobs import CLASSES, JOBS, TEST_SAMPLES

from fedactors.data.base import Data, Info
from fedactors.options import Options

_MODELS = {
    "logistic": {"name": "logistic"},
    "mlp": {"name": "mlp", "hidden": [200]},
    "cnn": {"name": "fsl_cifar"},
    "resnet18": {"name": "torch", "factory": f"{Path(__file__).with_name('residual_network.py')}:network"},
}


class BenchmarkData(Options):
    """The samples of one of the benchmark's jobs, client by client."""

    name: Literal["benchmark"] = "benchmark"
    job: str

    def info(self, seed: int, clients: int) -> Info:
        job = JOBS[self.job]
        sizes = np.full(clients, job.samples)
        return Info("benchmark", clients * job.samples, TEST_SAMPLES, job.shape, CLASSES, client_sizes=sizes)

    def check(self) -> None:
        """Look for nothing: the data are made."""

    def load(self, seed: int, clients: int) -> Data:
        job = JOBS[self.job]
        x, y = job.everything()
        bounds = np.arange(clients + 1) * job.samples
        return Data(x.reshape(-1, *job.shape), y.ravel(), *job.test(), classes=CLASSES, clients=bounds)


def register(folder: Path) -> None:
    """Write the metadata of an installed plugin to `folder` and put it on the path."""
    metadata = folder / "fedactors_benchmark-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: fedactors-benchmark\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text("[fedactors.datasets]\nbenchmark = fedactors_job:BenchmarkData\n")
    sys.path.insert(0, str(folder))


def scenario(job: Job, rounds: int) -> dict[str, Any]:
    """Return the scenario as a user writes it."""
    return {
        "name": f"bench-{job.name}",
        "task": {
            "dataset": {"name": "benchmark", "job": job.name},
            "model": _MODELS[job.model],
            "partition": "natural",
        },
        "population": [{"name": "devices", "count": job.clients}],
        "server": {
            "rounds": rounds,
            "cohort": job.cohort,
            "algorithm": "fedavg",
            "local": {"epochs": 1, "batch": job.batch},
            "schedule": {"name": "constant", "lr": job.lr},
            "evaluate_every": 10**9,
        },
    }


def main() -> None:
    job, options = arguments(
        ("--fleet", {"choices": ["ray", "local"], "default": "ray"}),
        ("--actors", {"type": int}),
        ("--bits", {"choices": ["portable", "native"], "default": "portable"}),
        ("--forecast", {"action": "store_true", "help": "print what `fedactors check` foresees, and do not run"}),
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        register(folder)
        words = scenario(job, options.rounds + 1) | {"cluster": {"bits": options.bits}}
        (folder / "scenario.yaml").write_text(yaml.safe_dump(words))
        from fedactors.scenario.model import Scenario
        from fedactors.simulation.runner import run

        loaded, before = Scenario.load(folder / "scenario.yaml"), process_age()
        if options.forecast:
            from fedactors.simulation.checks.check import check

            print(json.dumps(check(loaded, options.fleet, options.actors)["forecast"]))
            return
        run(loaded, folder / "run", fleet=options.fleet, actors=options.actors)
        rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    peer = "fedactors" if options.fleet == "ray" else "fedactors-local"
    peer = "fedactors-native" if options.bits == "native" else peer
    first, last = rows[0]["wall_seconds"], rows[-2]["wall_seconds"]
    steps = sum(row["steps"] for row in rows[1:-1])
    report(peer, job, steps, before + first, last - first, [row["train_loss"] for row in rows[:-1]])


if __name__ == "__main__":
    main()
