"""What a run would keep in memory, worked out before any of it is taken."""

from __future__ import annotations

from math import ceil, log2, prod

from fedactors.data.on_demand import row_bytes
from fedactors.errors import ScenarioError
from fedactors.job_limits import usable_memory
from fedactors.learning.chunks import chunk_sizes, evaluation_batch
from fedactors.metric_names import BEST, CLASS, OUTPUTS, WRITTEN, views_of
from fedactors.models.loss_description import LossDescription
from fedactors.simulation.prepared import Prepared

_NUMBER = 4  # bytes of float32
_WORKER_BYTES = 450_000_000  # a Python process with torch, before data and models
_MODELS = 4  # copies that are there at once whatever runs: the server's, a client's, its gradient, its update

_BATCH_COPIES = 3  # of the outputs of an evaluated batch, in float32: themselves, their softmax, what is worked out
_OUTPUT_BYTES = 24  # of each output of a measure that needs all: in float32, joined, in float64, and its softmax
_CURVE_BYTES = 40  # the same of curves, which also sort them: 41 were measured of auroc
_CURVES = ("auroc", "average_precision")
_CELL_BYTES = 16  # of a confusion matrix, and the counts that it is made from


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


def evaluation_bytes(prepared: Prepared) -> int:
    """Return about how many bytes an evaluation takes beside data and model: outputs of a batch, and for metrics."""
    model, info = prepared.model, prepared.info
    samples = max(info.test_size, info.validation_size)
    outputs = prod(model.output_shape)
    specs = [metric.spec() for metric in prepared.scenario.task.metrics]
    kind = CLASS if not isinstance(model.loss, LossDescription) else model.loss.label_kind
    views = views_of([spec for spec in specs if spec.name not in WRITTEN], kind)
    found = min(evaluation_batch(model), samples) * outputs * _NUMBER * _BATCH_COPIES
    if OUTPUTS in views:
        curves = any(spec.name in _CURVES for spec in specs)
        found += samples * outputs * (_CURVE_BYTES if curves else _OUTPUT_BYTES)
    if BEST in views:
        found += model.output_shape[-1] ** 2 * _CELL_BYTES
    return found


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
        "evaluation": evaluation_bytes(prepared),
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
