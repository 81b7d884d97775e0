"""What large cohorts cost on Ray: nodes of one core each on this machine, cohorts among a million devices.

    python -m benchmarks.cluster_scale
    python -m benchmarks.cluster_scale --nodes 1,2 --cohorts 1000,10000 --devices 100000

Softmax regression 60-10 on ten samples of each client, made when a client is first asked; one step for each client.
Nodes are Ray's own test cluster (`ray.cluster_utils`): each is a set of processes that believes it has a machine of
its own, with an object store of its own, so what goes between nodes is copied as between machines. They share this
machine's cores: compare processor times, not wall times, of more nodes than there are cores.

A row is the median of the rounds after the first. `driver ms`: processor time of the driver, all its threads.
`us each`: the same for a client asked. `sums KB`: what hosts and server hand one another of sums. `host GiB`: resident
memory of the largest client host. `first s`: until the first round is done, data and actors included.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import yaml

from fedactors import Scenario, run
from fedactors.simulation.progress import Silent

COLUMNS = {
    "nodes": 6,
    "cohort": 9,
    "wall ms": 10,
    "driver ms": 11,
    "us each": 9,
    "sums KB": 9,
    "driver GiB": 12,
    "host GiB": 10,
}
COLUMNS |= {"first s": 9}


class Noting(Silent):
    """Takes times at the end of each round, and the memory of the client hosts at the last."""

    def __init__(self) -> None:
        self.cpu = list[float]()
        self.wall = list[float]()
        self.hosts = list[int]()
        self.sums = 0

    def round(self, row: Mapping[str, Any]) -> None:
        self.cpu.append(time.process_time())
        self.wall.append(time.perf_counter())
        self.sums = row.get("bytes_reduced", 0)
        self.hosts = [process.info["memory_info"].rss for process in actors()]


def actors() -> Iterator[psutil.Process]:
    """Yield Ray's actor processes on this machine."""
    for process in psutil.process_iter(["name", "cmdline", "memory_info"]):
        if "ActorProcess" in " ".join(process.info["cmdline"] or []):
            yield process


def scenario(devices: int, cohort: int, rounds: int) -> dict[str, Any]:
    """Return a scenario in which every device is fast, always on, and holds eleven samples: ten to train on."""
    data = {"name": "synthetic", "samples": 11, "test_clients": 1000}
    return {
        "name": "large-cohort",
        "task": {"dataset": data, "model": "logistic", "partition": "natural"},
        "population": [{"name": "phones", "count": devices, "compute": {"per_sample": "1ms"}}],
        "server": {
            "rounds": rounds,
            "cohort": cohort,
            "local": {"epochs": 1, "batch": 10},
            "schedule": {"name": "constant", "lr": 0.05},
            "evaluate_every": rounds,
        },
    }


@contextmanager
def cluster(nodes: int) -> Iterator[str]:
    """Start Ray with nodes of one core each, all on loopback; yield its address."""
    from ray.cluster_utils import Cluster

    from fedactors.fleet.ray.ray_start import _loopback

    with _loopback():
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            for _ in range(nodes - 1):
                made.add_node(num_cpus=1)
            yield made.address
        finally:
            made.shutdown()


def measured(nodes: int, devices: int, cohort: int, rounds: int) -> str:
    """Return the row of one run."""
    noting = Noting()
    with tempfile.TemporaryDirectory() as folder, cluster(nodes) as address:
        written = Path(folder) / "scenario.yaml"
        written.write_text(yaml.safe_dump(scenario(devices, cohort, rounds)))
        began = time.perf_counter()
        run(Scenario.load(written), Path(folder) / "run", address=address, progress=noting, report=False)
    wall, driver = (1000 * statistics.median(differences(column)) for column in (noting.wall, noting.cpu))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    host, first = max(noting.hosts, default=0) / 2**30, noting.wall[0] - began
    costs = f"{wall:>10.0f}{driver:>11.1f}{1000 * driver / cohort:>9.1f}{noting.sums / 1000:>9.1f}"
    return f"{nodes:>6}{cohort:>9,}{costs}{peak:>12.2f}{host:>10.2f}{first:>9.1f}"


def differences(column: list[float]) -> list[float]:
    """Return what passed between one value and the next, without the first round."""
    return [after - before for before, after in pairwise(column)]


def main() -> None:
    """Print a row for each number of nodes and each cohort."""
    parser = argparse.ArgumentParser(description="What large cohorts cost on Ray.")
    parser.add_argument("--nodes", default="1,2,4")
    parser.add_argument("--cohorts", default="1000,10000,100000")
    parser.add_argument("--devices", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=6)
    chosen = parser.parse_args()
    print("".join(f"{name:>{width}}" for name, width in COLUMNS.items()))
    for nodes in map(int, chosen.nodes.split(",")):
        for cohort in map(int, chosen.cohorts.split(",")):
            print(measured(nodes, chosen.devices, cohort, chosen.rounds), flush=True)


if __name__ == "__main__":
    main()
