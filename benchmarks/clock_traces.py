"""How long the full FLASH and FedScale recordings take to read, and how much memory.

    FEDACTORS_SHARED=/where/recordings/are python -m benchmarks.clock_traces

FLASH: 1,000 phones, the recorded ones again and again. FedScale: 107,749 clients, made in the format of the original
pickle, each with the windows of a recorded one. Each is read in a process of its own.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARED = Path(os.environ.get("FEDACTORS_SHARED", Path(__file__).parents[2] / "shared")) / "traces"
PHONES, CLIENTS = 1000, 107_749


def flash(path: Path) -> None:
    """Write 1,000 phones."""
    recorded = list(json.loads((SHARED / "flash" / "state_traces_60.json").read_text()).values())
    phones = {str(k): {**recorded[k % len(recorded)], "guid": str(k)} for k in range(PHONES)}
    path.write_text(json.dumps(phones))


def fedscale(path: Path) -> None:
    """Write 107,749 clients."""
    recorded = list(pickle.loads((SHARED / "fedscale" / "client_behave_trace").read_bytes()).values())  # our own copy
    with path.open("wb") as file:
        # as lists of their own: pickle writes an object that it meets again as a reference
        clients = {k + 1: json.loads(json.dumps(recorded[k % len(recorded)])) for k in range(CLIENTS)}
        pickle.dump(clients, file, protocol=4)


def load(path: str) -> dict[str, float]:
    """Read a recording and return what it cost."""
    began = time.perf_counter()
    from fedactors.traces.format_registry import read

    timeline = read(path)
    return {
        "devices": len(timeline),
        "windows": len(timeline.on),
        "seconds": round(time.perf_counter() - began, 1),
        "cpu": round(time.process_time(), 1),
        "gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def main() -> None:
    """Print one line for each recording."""
    if len(sys.argv) > 1:
        print(json.dumps(load(sys.argv[1])))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (("flash", flash), ("fedscale", fedscale)):
            path = Path(folder) / name
            make(path)
            command = [sys.executable, "-m", "benchmarks.clock_traces", str(path)]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(f"{name:<10}{path.stat().st_size / 1e6:>8.0f} MB  " + "  ".join(f"{v:,} {k}" for k, v in row.items()))


if __name__ == "__main__":
    main()
