"""Rows of a chunk, trained a part at a time when memory lacks for all of them at once.

Whether the parts have the bits of the whole, the engine says: `Engine.parts_keep_bits`. Products of matrices keep their
bits from two rows up, so no part is smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

import torch
from torch import Tensor

from fedactors.engines.base import Engine
from fedactors.engines.client_batch import BatchResult, ClientBatch, DeviceDataset
from fedactors.models.precision import rounding

T = TypeVar("T")

_LEAST = 2  # rows of a part


class MicroBatching:
    """Calls an engine for whole batches; after running out of memory, for parts of half the size from then on.

    `at_once` is the number of rows trained at once; None as long as all of them fit.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.at_once: int | None = None

    def train(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows. Raises what the engine raises, MemoryError if two rows do not fit either."""
        while True:
            parts = self._parts(len(rows.clients))
            if rows.sums is not None:
                rows.sums.sums.clear()
            try:
                with rounding(dataset.model.precision, dataset.device):
                    return self._joined(dataset, rows, parts)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
            rows.prepared.clear()
            largest = max(parts)  # here the frames that held tensors are gone
            if largest < 2 * _LEAST:
                raise MemoryError(f"{largest} clients at once do not fit the memory of this {dataset.device}")
            self.limit(largest // 2)
            if dataset.x.is_cuda:
                torch.cuda.empty_cache()

    def limit(self, rows: int) -> None:
        """Train at most so many rows at once from now on, two if it is fewer."""
        self.at_once = max(_LEAST, min(rows, self.at_once or rows))

    def _parts(self, rows: int) -> list[int]:
        """Return the sizes of the parts, as even as can be."""
        wanted = 1 if self.at_once is None else -(-rows // self.at_once)
        count = max(1, min(wanted, rows // _LEAST))
        return [rows // count + (part < rows % count) for part in range(count)]

    def _joined(self, dataset: DeviceDataset, rows: ClientBatch, parts: Sequence[int]) -> BatchResult:
        if len(parts) == 1:
            return self.engine.train(dataset, rows)
        bounds = pairwise([0, *accumulate(parts)])
        found = [self.engine.train(dataset, rows.take(range(first, last))) for first, last in bounds]
        longest = max(part.losses.shape[1] for part in found)
        return BatchResult(
            torch.cat([part.deltas for part in found]),
            torch.cat([_padded(part.losses, longest) for part in found]),
            {name: torch.cat([part.state[name] for part in found]) for name in found[0].state},
            torch.cat([_gradients(part) for part in found]) if rows.sums_gradients else None,
        )


def if_memory_allows(act: Callable[[], T]) -> T | None:
    """Return what `act` returns; None if memory lacks for it."""
    try:
        return act()
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        return None


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is lacking, of a GPU or of the host."""
    cuda = isinstance(error, torch.cuda.OutOfMemoryError)
    return cuda or isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def _gradients(part: BatchResult) -> Tensor:
    assert part.gradients is not None  # it is asked of engines that sum them
    return part.gradients


def _padded(losses: Tensor, steps: int) -> Tensor:
    return torch.nn.functional.pad(losses, (0, steps - losses.shape[1]))
