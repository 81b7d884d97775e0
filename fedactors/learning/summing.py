"""Weighted sums of the uploads of a chunk's clients, and which uploads hold NaN or Inf."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from fedactors.learning.training_task import BadUpdates, Chunk, ClientLoss, Vectors

_COLUMNS = 8192  # multiplied and added at a time, so that products stay in the cache


def _weighted_sum(rows: Tensor, weights: Sequence[float]) -> np.ndarray:
    """Return sum_i w_i rows_i; a CPU adds in the order of the rows, a GPU in one that depends on the shape alone."""
    if rows.is_cuda:
        on_gpu: np.ndarray = (torch.tensor(weights, dtype=rows.dtype, device=rows.device) @ rows).cpu().numpy()
        return on_gpu
    values = rows.numpy()
    factors = np.array(weights, np.float32)[:, None]
    total = np.empty(values.shape[1], np.float32)
    with np.errstate(all="ignore"):  # updates that are no numbers are found afterwards
        for first in range(0, len(total), _COLUMNS):
            some = slice(first, first + _COLUMNS)
            np.add.reduce(values[:, some] * factors, axis=0, out=total[some])
    return total


def summed(
    chunk: Chunk, uploads: dict[str, Tensor], losses: Tensor, unweighted: Collection[str]
) -> tuple[Vectors, BadUpdates]:
    """Return the sums of `uploads`, weighted but for the `unweighted` ones, and which of them are bad."""
    equal = (1.0,) * len(chunk.weights)
    sums = {name: _weighted_sum(rows, equal if name in unweighted else chunk.weights) for name, rows in uploads.items()}
    whole = finite(sums)
    bad = () if whole and math.isfinite(float(losses.sum())) else _bad(chunk, uploads, losses)
    if not bad and not whole:  # finite updates whose sum is not
        bad = tuple((client, steps - 1) for client, steps in zip(chunk.clients, chunk.steps, strict=True))
    return sums, bad


def one_by_one(chunk: Chunk, uploads: dict[str, Tensor], losses: Tensor) -> tuple[Vectors, BadUpdates]:
    """Return the rows of `uploads`, one for each client, and which of them are bad."""
    rows = {name: np.ascontiguousarray(vectors.cpu().numpy()) for name, vectors in uploads.items()}
    good = finite(rows) and math.isfinite(float(losses.sum()))
    return rows, () if good else _bad(chunk, uploads, losses)


def finite(sums: Vectors) -> bool:
    """Whether all sums are numbers."""
    return all(bool(np.isfinite(total).all()) for total in sums.values())


def mean_losses(losses: Tensor, steps: Tensor) -> Tensor:
    """Return the mean loss of each row's local steps, `(rows, 1)`, from those of all, `(rows, most steps)`.

    `steps` are how many each row took, `(rows, 1)`; a row without any has 0. Losses are added one after the other, so
    that what stands behind a row's last step, zeros, changes no bit.
    """
    sums = torch.nn.functional.pad(losses.double(), (1, 0)).cumsum(1)[:, -1:]
    return (sums / steps.clamp(min=1.0)).to(losses.dtype)


def client_losses(chunk: Chunk, losses: Tensor) -> tuple[ClientLoss, ...]:
    """Return the loss of each client that took a step."""
    exact = losses.double()
    sums, squares = exact.sum(1).tolist(), exact.square().sum(1).tolist()
    columns = zip(chunk.clients, chunk.steps, sums, squares, strict=True)
    return tuple((client, total / steps, square / steps) for client, steps, total, square in columns if steps)


def also_kept(bad: BadUpdates, chunk: Chunk, keeps: dict[str, Tensor], losses: Tensor) -> BadUpdates:
    """Return the `bad` updates, and those whose clients would keep NaN or Inf in `keeps`, a row for each."""
    if all(math.isfinite(float(rows.sum())) for rows in keeps.values()):
        return bad
    return tuple((dict(_bad(chunk, keeps, losses)) | dict(bad)).items())


def _bad(chunk: Chunk, vectors: dict[str, Tensor], losses: Tensor) -> BadUpdates:
    """Return (client, first bad local step) of each row of `vectors` that holds NaN or Inf."""
    found = []
    for row, client in enumerate(chunk.clients):
        if not all(bool(rows[row].isfinite().all()) for rows in vectors.values()):
            wrong = torch.nonzero(~losses[row].isfinite())
            found.append((client, int(wrong[0]) if len(wrong) else chunk.steps[row] - 1))
    return tuple(found)
