"""How replay scales: 10,000 to 1,000,000 devices, a week of availability, 1,000 rounds of a cohort of 1,000.

    python -m benchmarks.clock_scale                      # the table: devices, participants
    python -m benchmarks.clock_scale --devices 1000000    # one row

Each row is a process of its own: the recording is made as Parquet in our native format, about 14 windows for each
device, and `fedactors replay` runs over it with downloads, local steps, uploads and a deadline of ten minutes. Time
is that of the whole command, on the wall and of the processor (others may use the machine), memory its peak.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from fedactors.plan import SECOND
from fedactors.traces.formats import native
from fedactors.traces.timeline import Timeline

DAYS, PER_DAY = 7, 2  # windows: one in each half of each day
SCENARIO = """
name: scale-{devices}
seed: 1
task:
  dataset: {{name: synthetic, samples: 100}}
  model: logistic
  partition: natural
population:
  - name: phones
    count: {devices}
    availability: {{name: trace, path: {path}}}
    compute: {{per_sample: 600ms, spread: 0.7}}
    network: {{down: 20 kB/s, up: 5 kB/s, latency: 100ms, spread: 0.8}}
server:
  rounds: {rounds}
  cohort: {cohort}
  deadline: 8min
  local: {{epochs: 5, batch: 10}}
"""


def recording(devices: int, seed: int = 0) -> Timeline:
    """Return a synthetic week of `devices` phones: on twice a day, for three hours on average."""
    draws = np.random.Generator(np.random.Philox(seed))
    halves = DAYS * PER_DAY
    half = 86_400 * SECOND // PER_DAY
    phase = draws.integers(0, half, size=(devices, 1))  # so that somebody is on at any hour
    begin = phase + np.arange(halves) * half + draws.integers(0, half // 2, size=(devices, halves))
    length = draws.integers(half // 48, half // 2 - half // 48, size=(devices, halves))
    starts = np.arange(devices + 1, dtype=np.int64) * halves
    names = tuple(f"phone-{number}" for number in range(devices))
    first, last = np.zeros(devices, np.int64), np.full(devices, (DAYS + 1) * 86_400 * SECOND, np.int64)
    return Timeline(names, starts, begin.ravel(), (begin + length).ravel(), first, last)


def measure(devices: int, rounds: int, cohort: int, folder: Path) -> dict[str, float]:
    """Make a recording and a scenario in `folder`, replay it in a process of its own, and return its cost."""
    native.write(recording(devices), folder / f"{devices}.parquet")
    scenario = folder / "scale.yaml"
    scenario.write_text(SCENARIO.format(devices=devices, path=f"{devices}.parquet", rounds=rounds, cohort=cohort))
    command = [sys.executable, "-m", "benchmarks.clock_scale", "--replay", str(scenario)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(printed.splitlines()[-1])


def replay(scenario: str) -> dict[str, float]:
    """Replay as the command line does; return seconds, peak memory in GiB and what came of it."""
    began = time.perf_counter()
    from fedactors.scenario.model import Scenario
    from fedactors.simulation.replay import replay as play

    with tempfile.TemporaryDirectory() as out:
        summary = play(Scenario.load(scenario), Path(out) / "run").summary
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 1),
        "cpu": round(time.process_time(), 1),
        "clock": summary["wall_seconds"],
        "gib": round(peak, 2),
        "asked": summary["asked"],
        "heard": summary["heard"],
        "days": round(summary["virtual_seconds"] / 86_400, 2),
        "digest": summary["digests"]["plans"][:16],
    }


def main() -> None:
    """Print one line for each size."""
    parser = argparse.ArgumentParser(description="Cost of replay by devices and by participants.")
    parser.add_argument("--devices", type=int)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--cohort", type=int, default=1000)
    parser.add_argument("--replay", metavar="SCENARIO", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.replay:
        print(json.dumps(replay(chosen.replay)))
        return
    sizes = [(chosen.devices, chosen.rounds)] if chosen.devices else [(10**4, 1000), (10**5, 1000), (10**6, 1000)]
    shorter = [] if chosen.devices else [(10**6, 250), (10**6, 500)]
    print(f"{'devices':>10}{'asked':>11}{'seconds':>9}{'cpu':>8}{'clock':>9}{'GiB':>7}  heard, days, digest")
    with tempfile.TemporaryDirectory() as folder:
        for devices, rounds in [*sizes, *shorter]:
            row = measure(devices, rounds, chosen.cohort, Path(folder))
            costs = f"{row['seconds']:>9.1f}{row['cpu']:>8.1f}{row['clock']:>9.1f}{row['gib']:>7.2f}"
            told = f"{row['heard']:,}, {row['days']}, {row['digest']}"
            print(f"{devices:>10,}{row['asked']:>11,}{costs}  {told}", flush=True)


if __name__ == "__main__":
    main()
