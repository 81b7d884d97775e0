"""What a run would keep in memory, worked out before any of it is taken."""

from __future__ import annotations

from math import ceil, log2

from fedactors.data.on_demand import row_bytes
from fedactors.errors import ScenarioError
from fedactors.job_limits import usable_memory
from fedactors.learning.chunks import chunk_sizes
from fedactors.simulation.prepared import Prepared

_NUMBER = 4  # bytes of float32
_WORKER_BYTES = 450_000_000  # a Python process with torch, before data and models
_MODELS = 4  # copies that are there at once whatever runs: the server's, a client's, its gradient, its update


def single_updates(prepared: Prepared) -> int:
    """Return the bytes of a round's updates where the server combines them one by one: twice, as they are joined."""
    return 2 * _asked(prepared) * prepared.model_bytes if prepared.scenario.server.aggregation.single else 0


def host_bytes(prepared: Prepared) -> int:
    """Return about how many bytes a client host on a CPU has beside the data.

    A model and an update for each client of a chunk, a gradient, the model that they start from, and the sums of a
    round that have no neighbour yet.
    """
    sizes = chunk_sizes(_asked(prepared), prepared.model, "cpu")
    models = 2 * max(sizes) + 2 + ceil(log2(len(sizes)))
    return _WORKER_BYTES + models * prepared.model_bytes


def _asked(prepared: Prepared) -> int:
    """Return how many clients a round asks."""
    server = prepared.scenario.server
    return prepared.scenario.devices if server.cohort == "all" else server.cohort + server.over_selection


def wanted(prepared: Prepared, *, joined: bool = False) -> dict[str, int]:
    """Return the bytes that a run keeps here at the least; of a cluster that is `joined`, clients' lie elsewhere."""
    info, server = prepared.info, prepared.scenario.server
    kept = len(server.algorithm.keeps) * prepared.model_bytes + len(prepared.personal) * _NUMBER  # at each client
    kept += sum(prepared.feedback.values()) * _NUMBER
    return {
        "the data set": prepared.train_bytes + info.evaluated_size * row_bytes(info.input_shape),
        "the model": _MODELS * prepared.model_bytes,
        "single updates": single_updates(prepared),
        "what clients keep": 0 if joined else prepared.ever_asked * kept,
    }


def refuse_too_much(prepared: Prepared, *, joined: bool = False) -> None:
    """Raise ScenarioError if a run would keep more than this process may use."""
    parts, there = wanted(prepared, joined=joined), usable_memory()
    if (total := sum(parts.values())) > there:
        listed = ", ".join(f"{name} {_gigabytes(size)}" for name, size in parts.items() if size)
        raise ScenarioError(
            f"{prepared.scenario.source}: a run would keep at least {_gigabytes(total)} in memory: {listed}"
            f" (accepted: at most {_gigabytes(there)}, which this process may use)"
        )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
