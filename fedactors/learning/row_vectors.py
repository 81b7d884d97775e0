"""Between chunks and the rows of one call of an engine: models gathered for rows, results divided among chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.learning.training_task import Chunk, TrainingTask, Vectors


def as_tensors(vectors: Mapping[str, NDArray[np.float32]]) -> dict[str, Tensor]:
    """Return named vectors as tensors with the same memory."""
    return {name: torch.from_numpy(value) for name, value in vectors.items()}


def own_tensors(vectors: Mapping[str, NDArray[np.float32]], device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Return named vectors as tensors on a device with memory of their own: what is stored is safe from its reader."""
    return {name: value.to(device, copy=True) for name, value in as_tensors(vectors).items()}


def column(values: Sequence[int], device: torch.device) -> Tensor:
    """Return a number of each row, `(rows, 1)`."""
    return torch.tensor(values, dtype=torch.float32, device=device)[:, None]


def gathered(bases: list[dict[str, Tensor]], chosen: Sequence[int]) -> dict[str, Tensor]:
    """Return what was sent to each row: one vector for all if all started from the same version."""
    if len(bases) == 1:
        return bases[0]
    return {name: torch.stack([bases[base][name] for base in chosen]) for name in bases[0]}


def parts_of(chunks: Sequence[Chunk], losses: Tensor) -> Iterator[tuple[Chunk, slice, Tensor]]:
    """Yield each chunk with its rows and their losses, in memory of their own: a sum of them has one order."""
    first = 0
    for chunk in chunks:
        rows = slice(first, first + len(chunk.clients))
        yield chunk, rows, losses[rows, : max(chunk.steps)].contiguous()
        first = rows.stop


def shares(task: TrainingTask, chunk: Chunk, device: torch.device) -> dict[str, Tensor]:
    """Return the share of each client of `chunk`, if the algorithm uses it."""
    if not task.algorithm.scales_by_share:
        return {}
    return {"share": torch.from_numpy(task.shares[list(chunk.clients), None]).to(device)}


def slices(vectors: Mapping[str, Tensor], rows: slice) -> dict[str, Tensor]:
    """Return some rows of named vectors; a vector with two names stays one object."""
    parts = {id(one): one[rows] for one in vectors.values()}
    return {name: parts[id(one)] for name, one in vectors.items()}


def kept_rows(
    kept: Sequence[Vectors | None], names: Sequence[str], parameters: int, device: torch.device
) -> dict[str, Tensor]:
    """Return what clients kept as rows, `(clients, parameters)` under each of the `names`; zeros at a first trip."""
    zeros = np.zeros(parameters, np.float32)
    return {
        name: torch.from_numpy(np.stack([zeros if one is None else one[name] for one in kept])).to(device)
        for name in names
    }


def apart(keeps: dict[str, Tensor], clients: int) -> tuple[Vectors, ...]:
    """Return what each client keeps as an object of its own, without the memory of its neighbours."""
    arrays = {name: rows.cpu().numpy() for name, rows in keeps.items()}
    return tuple({name: array[client].copy() for name, array in arrays.items()} for client in range(clients))
