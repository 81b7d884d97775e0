"""Training data that are reassigned to the active clients in every round.

Source: Fed-LAMB paper, section 4: "in each round, the training samples are allocated to the active devices". How many
samples a client has stays as it was, so the clock is not concerned; which ones they are is a function of (seed,
round, active clients) that every host computes from the labels it has. No sample travels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedactors.data.holdings import Part, raw
from fedactors.data.partitions.assignment import Split
from fedactors.data.partitions.partition import Partition
from fedactors.streams import Purpose, stream

Int64 = NDArray[np.int64]


class Placed:
    """A split among some of all clients."""

    def __init__(self, split: Split, clients: Sequence[int]) -> None:
        self._split = split
        self._places = {client: place for place, client in enumerate(clients)}

    def of(self, client: int) -> Int64:
        """Return the samples of `client`. Raises KeyError if it got none in this round."""
        return self._split.of(self._places[client])


class ReassignedSplit:
    """A split for each round; `labels` are `(n,)` and below `classes`, `sizes` are `(clients,)`."""

    def __init__(self, partition: Partition, labels: Int64, classes: int, sizes: Int64, seed: int) -> None:
        self._partition = partition
        self._labels = labels
        self._classes = classes
        self._sizes = sizes
        self._seed = seed
        self._latest: tuple[tuple[int, tuple[int, ...]], Placed] | None = None

    def of(self, client: int) -> Int64:
        """Raise TypeError: no sample belongs to a client for longer than a round."""
        raise TypeError("the data are reassigned in every round (accepted: among, the holdings of one round)")

    def signature(self) -> Iterator[Part]:
        """Yield what it is identified by: labels and sizes, of which each round's holdings are made."""
        yield raw(self._labels)
        yield raw(self._sizes)

    def among(self, version: int, active: tuple[int, ...]) -> Placed:
        """Return which samples each `active` client holds in round `version`; kept for the chunks of the same round."""
        key = version, active
        if self._latest is None or self._latest[0] != key:
            seed = int(stream(self._seed, Purpose.REALLOCATION, 0, version).integers(2**63))
            split = self._partition.split(self._labels, self._classes, self._sizes[list(active)], seed)
            self._latest = key, Placed(split, active)
        return self._latest[1]
