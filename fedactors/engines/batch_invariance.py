"""Whether a row has the same bits wherever it lies among others: found out on the processor that will train it.

Libraries treat matrices by their sizes, and some by where in memory they begin. Rows of a stack begin at every multiple
of their size, so for some sizes a client's bits would depend on which others are trained at once. No rule says for
which sizes, so equal rows are trained in all places and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.engines.client_batch import BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.local_work import LocalWork

_PLACES = 20  # at least: at every multiple of 4 bytes in a line of a cache, once at least
_TOGETHER = 3  # rows of a chunk: chunks begin at such places, too
_STEPS = 9  # odd, so that stacks of all samples of a trip begin at every such place, too


class Trial(NamedTuple):
    """All that decides whether rows have the same bits in all places: equal trials have equal results."""

    work: LocalWork  # of one client
    max_rows: int  # that are trained together
    x_shape: tuple[int, ...]  # of a sample
    y_shape: tuple[int, ...]  # of its label
    has_cache: bool  # whether the engine keeps something of the samples
    threads: int  # of torch
    steps: int | None = None  # of the longest trip, whose length decides the places of rows; None if it may be any


class Probe(NamedTuple):
    """Equal rows of random samples."""

    x: Tensor  # (n, *shape)
    y: Tensor  # (n,)
    sizes: NDArray[np.int64]  # (1,): samples of the one client
    rows: ClientBatch


def probe(trial: Trial) -> Probe | None:
    """Return rows to compare; None if the client's work has no step."""
    work, (workload,) = trial.work, trial.work.workloads
    places = max(_PLACES, trial.max_rows)
    steps = trial.steps or min(_STEPS, workload.wanted - 1 + workload.wanted % 2)
    if steps < 1:
        return None
    draws, count = np.random.Generator(np.random.Philox(0)), workload.samples(steps)
    labels, shape = work.model.output_shape[0], (count, *trial.x_shape)
    x = torch.from_numpy(draws.standard_normal(shape, dtype=np.float32))
    y = torch.from_numpy(draws.integers(0, labels, (count, *trial.y_shape)))
    order = np.arange(count, dtype=np.int64)
    start = torch.from_numpy(draws.standard_normal(work.model.parameters, dtype=np.float32)).mul_(0.1)
    equal = ClientBatch(
        clients=[0] * places,
        steps=[steps] * places,
        works=[workload] * places,
        order=[order] * places,
        keys=torch.zeros(places, dtype=torch.int64),
        starts=start.expand(places, -1),
        corrections=None,
        prox=work.prox,
        lr=0.1,
        chunks=[place // _TOGETHER for place in range(places)],
    )
    return Probe(x, y, np.array([count]), equal)


def equal_bits(
    train: Callable[[DeviceDataset, ClientBatch], BatchResult], dataset: DeviceDataset, probe: Probe
) -> bool:
    """Whether equal rows get the same bits in all places, and two of them by themselves."""
    many = train(dataset, probe.rows)
    two = train(dataset, probe.rows.take([0, 1]))
    pairs = ((many.deltas, two.deltas), (many.losses, two.losses))
    return all(torch.equal(found, alone[:1].expand_as(found)) for found, alone in pairs)
