"""What a run would keep in memory, worked out before any of it is taken."""

from __future__ import annotations

from fedactors.data.on_demand import row_bytes
from fedactors.errors import ScenarioError
from fedactors.simulation.checks.machine_memory import machine_bytes
from fedactors.simulation.prepared import Prepared

_NUMBER = 4  # bytes of float32
_MODELS = 4  # copies that are there at once whatever runs: the server's, a client's, its gradient, its update


def single_updates(prepared: Prepared) -> int:
    """Return the bytes of a round's updates where the server combines them one by one: twice, as they are joined."""
    server = prepared.scenario.server
    if not server.aggregation.single:
        return 0
    asked = prepared.scenario.devices if server.cohort == "all" else server.cohort + server.over_selection
    return 2 * asked * prepared.model_bytes


def wanted(prepared: Prepared, *, joined: bool = False) -> dict[str, int]:
    """Return the bytes that a run keeps here at the least; of a cluster that is `joined`, clients' lie elsewhere."""
    info, server = prepared.info, prepared.scenario.server
    kept = len(server.algorithm.keeps) * prepared.model_bytes + len(prepared.personal) * _NUMBER  # at each client
    return {
        "the data set": prepared.train_bytes + info.test_size * row_bytes(info.input_shape),
        "the model": _MODELS * prepared.model_bytes,
        "single updates": single_updates(prepared),
        "what clients keep": 0 if joined else prepared.ever_asked * kept,
    }


def refuse_too_much(prepared: Prepared, *, joined: bool = False) -> None:
    """Raise ScenarioError if a run would keep more than this machine has."""
    parts, there = wanted(prepared, joined=joined), machine_bytes()
    if (total := sum(parts.values())) > there:
        listed = ", ".join(f"{name} {_gigabytes(size)}" for name, size in parts.items() if size)
        raise ScenarioError(
            f"{prepared.scenario.source}: a run would keep at least {_gigabytes(total)} in memory: {listed}"
            f" (accepted: at most {_gigabytes(there)}, which this machine has)"
        )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
