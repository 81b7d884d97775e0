"""What a round costs: it should grow with the cohort, and neither with the population nor with the rounds passed.

    python -m benchmarks.round_cost --rounds 400

Softmax regression 60-10 on ten samples of each client, batches of ten, on the local fleet, in one process and thread:
all there is, clock, training, reduction and books. Processor time, median of the rounds of the second and last tenth.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "peers")]

import fedactors_job  # noqa: E402
import yaml  # noqa: E402
from jobs import JOBS  # noqa: E402

import fedactors  # noqa: E402
from fedactors.simulation.progress import Silent  # noqa: E402

POPULATIONS = ((1_000, 100), (10_000, 100), (100_000, 100))  # (clients, cohort)
COHORTS = ((10_000, 50), (10_000, 200), (10_000, 400))


class Noting(Silent):
    """Takes the processor time at the end of each round."""

    def __init__(self) -> None:
        self.seconds = list[float]()

    def round(self, row: Mapping[str, Any]) -> None:
        self.seconds.append(time.process_time())


def milliseconds(clients: int, cohort: int, rounds: int) -> tuple[float, float]:
    """Return the processor time of a round at the beginning of a run and at its end, in ms."""
    JOBS["logistic"] = job = replace(JOBS["logistic"], clients=clients, cohort=cohort, samples=10)
    noting = Noting()
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "scenario.yaml"
        written.write_text(yaml.safe_dump(fedactors_job.scenario(job, rounds)))
        scenario = fedactors.Scenario.load(written)
        fedactors.run(scenario, Path(folder) / "run", fleet="local", progress=noting, report=False)
    each = [1000 * (after - before) for before, after in zip(noting.seconds, noting.seconds[1:], strict=False)]
    tenth = max(1, len(each) // 10)
    return statistics.median(each[tenth : 2 * tenth]), statistics.median(each[-tenth:])


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a round costs.")
    parser.add_argument("--rounds", type=int, default=1000)
    options = parser.parse_args()
    print(f"{'clients':>9}{'cohort':>8}{'ms a round, second tenth':>26}{'last tenth':>12}{'us a client':>13}")
    with tempfile.TemporaryDirectory() as folder:
        fedactors_job.register(Path(folder))
        for clients, cohort in (*POPULATIONS, *COHORTS):
            first, last = milliseconds(clients, cohort, options.rounds)
            print(f"{clients:9,}{cohort:8,}{first:26.2f}{last:12.2f}{1000 * last / cohort:13.1f}", flush=True)


if __name__ == "__main__":
    main()
