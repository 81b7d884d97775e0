"""Rows of a chunk, trained a part at a time when memory lacks for all of them at once.

Rows do not know of one another, so that parts give the bits of the whole, with three exceptions. `chain` multiplies
the samples of several clients at once, which on some processors round by their number. `cohort` trains
convolutions of many clients as one grouped convolution, whose kernel is chosen by the number of groups. And optimisers
other than SGD work element by element on all rows at once, some in vectors and the rest alone, which round differently.
Products of matrices keep their bits from two rows up, so no part is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from fedactors.engines import conv_sequential, sequential
from fedactors.engines.base import BatchResult, ClientBatch, DeviceDataset, Train
from fedactors.models.layers import Conv, Model
from fedactors.models.precision import rounding
from fedactors.optim.client_optimizers import SGD, Optimizer

_LEAST = 2  # rows of a part


class MicroBatching:
    """An engine that halves its parts when it runs out of memory, and keeps to that size.

    `at_once` is the number of rows trained at once; None as long as all of them fit.
    """

    def __init__(self, train: Train) -> None:
        self.engine = train
        self.at_once: int | None = None

    def __call__(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows. Raises what the engine raises, MemoryError if two rows do not fit either."""
        while True:
            parts = self._parts(len(rows.clients))
            if rows.total is not None:
                rows.total.sums.clear()
            try:
                with rounding(dataset):
                    return self._joined(dataset, rows, parts)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
            rows.ready.clear()
            largest = max(parts)  # here the frames that held tensors are gone
            if largest < 2 * _LEAST:
                raise MemoryError(f"{largest} clients at once do not fit the memory of this {dataset.x.device.type}")
            self.limit(largest // 2)
            if dataset.x.is_cuda:
                torch.cuda.empty_cache()

    def limit(self, rows: int) -> None:
        """Train at most so many rows at once from now on, two if it is fewer."""
        self.at_once = max(_LEAST, min(rows, self.at_once or rows))

    def keeps_bits(self, model: Model, optimizer: Optimizer) -> bool:
        """Whether parts give the bits of the whole."""
        if self.engine is sequential.train:
            return True
        if self.engine is conv_sequential.train:
            return conv_sequential.steady(model)
        grouped = any(isinstance(layer, Conv) for layer in model.layers)
        return isinstance(optimizer, SGD) and not grouped

    def _parts(self, rows: int) -> list[int]:
        """Return the sizes of the parts, as even as can be."""
        wanted = 1 if self.at_once is None else -(-rows // self.at_once)
        count = max(1, min(wanted, rows // _LEAST))
        return [rows // count + (part < rows % count) for part in range(count)]

    def _joined(self, dataset: DeviceDataset, rows: ClientBatch, parts: Sequence[int]) -> BatchResult:
        if len(parts) == 1:
            return self.engine(dataset, rows)
        bounds = pairwise([0, *accumulate(parts)])
        found = [self.engine(dataset, rows.take(range(first, last))) for first, last in bounds]
        longest = max(part.losses.shape[1] for part in found)
        return BatchResult(
            torch.cat([part.deltas for part in found]),
            torch.cat([_padded(part.losses, longest) for part in found]),
            {name: torch.cat([part.state[name] for part in found]) for name in found[0].state},
        )


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is lacking, of a GPU or of the host."""
    cuda = isinstance(error, torch.cuda.OutOfMemoryError)
    return cuda or isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def _padded(losses: Tensor, steps: int) -> Tensor:
    return torch.nn.functional.pad(losses, (0, steps - losses.shape[1]))
