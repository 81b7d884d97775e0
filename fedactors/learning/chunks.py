"""How the trips of a round are cut into chunks, which chunks a host trains together, and how test samples are cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from fedactors.engines.local_work import CACHED
from fedactors.learning.training_task import Chunk
from fedactors.models.dense_stacks import blocks_of
from fedactors.models.layers import Conv, Model
from fedactors.models.module_layer import ModuleLayer
from fedactors.workload import Workload

_GPU_CHUNK_VALUES = 2**28  # parameters of all models of a chunk on a GPU: 1 GiB; a step takes a few times that
_GPU_HOST_VALUES = 2**26  # parameters of all models that keep one GPU busy: it reads them in 0.1 ms
_HOSTS = 4  # hosts among which a cohort can be divided evenly, however many there are: part of the bits
_MOST_CHUNKS = 256  # chunks of a large cohort of small models: as many hosts can share it
TOGETHER = 1000  # rows of several chunks that an engine trains at once, at most
_EVALUATED = 1000  # test samples at a time; part of the result's bits, so never tuned to the machine
_CONV_EVALUATED = 100  # test samples at a time of convolutions on a CPU: activations then stay in its caches
_COLUMNS = ("clients", "model_indices", "base_versions", "steps", "weights")


def chunk_sizes(trips: int, model: Model, device: str) -> list[int]:
    """Return how many trips each chunk takes, from their number, the model and the device type alone.

    On a CPU the moving models of a chunk should stay in its cache, and there should be work for four hosts, evenly, in
    a large cohort for many. A GPU should have work that takes longer than its launch, and room for what a step makes
    of models.
    """
    if device == "cuda":
        most = max(2, min(1024, _GPU_CHUNK_VALUES // model.parameters))
        hosts = min(_HOSTS, trips * model.parameters // _GPU_HOST_VALUES)
    else:
        most = _most_on_a_cpu(trips, model)
        hosts = _HOSTS
    chunks = max(-(-trips // most), min(hosts, trips // 4))
    if device != "cuda" and chunks > 2:
        chunks = -(-chunks // _HOSTS) * _HOSTS
    return [trips // chunks + (number < trips % chunks) for number in range(min(chunks, trips))]


def most_together(cohort: int) -> int:
    """Return for how many clients a host needs samples at once, on a CPU: those it trains, and those it prepares."""
    return 2 * max(TOGETHER, -(-cohort // _MOST_CHUNKS))


def _most_on_a_cpu(trips: int, model: Model) -> int:
    """Return how many trips a chunk takes at most: as many models as a cache holds where they may move at once."""
    modules = [layer for layer in model.layers if isinstance(layer, ModuleLayer)]
    if blocks_of(model) or _move_at_once(model, modules):
        return max(2, min(max(25, -(-trips // _MOST_CHUNKS)), CACHED // model.parameters))
    return 2 if modules and model.parameters > CACHED else 4


def _move_at_once(model: Model, modules: Sequence[ModuleLayer]) -> bool:
    """Whether a model of modules of the user is small, and gains by vmap on a CPU, where a scenario names that engine.

    Chunks are part of the bits, so that other engines have the same.
    """
    small = bool(modules) and model.parameters <= CACHED
    return small and all(layer.vmappable and not layer.convolves for layer in modules)


def groups(chunks: Sequence[Chunk], rows: int, works: Sequence[Workload]) -> list[list[Chunk]]:
    """Return runs of chunks that agree in all that is common to their trips, each of at most so many `rows` or one.

    They agree, too, in what decides how large the matrices of a step are: the longest trip, and the largest batch of
    the clients' workloads `works`. One client has other bits alone than beside others: a chunk of one stays alone.
    """
    found, taken = list[list[Chunk]](), 0
    for chunk in chunks:
        taken += len(chunk.clients)
        if found and taken <= rows and _agree(found[-1][0], chunk, works):
            found[-1].append(chunk)
        else:
            found.append([chunk])
            taken = len(chunk.clients)
    return found


def _agree(one: Chunk, other: Chunk, works: Sequence[Workload]) -> bool:
    alone = 1 in (len(one.clients), len(other.clients))
    return not alone and _common(one, works) == _common(other, works)


def _common(chunk: Chunk, works: Sequence[Workload]) -> tuple[object, ...]:
    batch = max(works[client].batch for client in chunk.clients)
    return chunk.version, chunk.lr, chunk.active, max(chunk.steps), batch


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Return one chunk of the trips of several."""
    if len(chunks) == 1:
        return chunks[0]
    columns: dict[str, Any] = {
        name: tuple(chain.from_iterable(getattr(chunk, name) for chunk in chunks)) for name in _COLUMNS
    }
    return chunks[0]._replace(**columns)


def evaluation_batch(model: Model, device: str = "cpu") -> int:
    """Return how many samples are evaluated at a time."""
    return _CONV_EVALUATED if device == "cpu" and any(isinstance(layer, Conv) for layer in model.layers) else _EVALUATED
