"""Training data that are dealt anew to the active clients in every round.

Source: Fed-LAMB paper, section 4: "in each round, the training samples are allocated to the active devices". How many
samples a client has stays as it was, so the clock needs to know nothing; which ones they are is a function of (seed,
round, active clients) that every host works out from the labels it has. No sample travels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedactors.data.partitions.assignment import Split
from fedactors.data.partitions.partition import Partition
from fedactors.streams import Purpose, stream

Int64 = NDArray[np.int64]


class Placed:
    """A split among some of all clients."""

    def __init__(self, split: Split, clients: Sequence[int]) -> None:
        self._split, self._places = split, {client: place for place, client in enumerate(clients)}

    def of(self, client: int) -> Int64:
        """Return the samples of `client`. Raises KeyError if it got none in this round."""
        return self._split.of(self._places[client])


class ReassignedSplit:
    """Who holds which samples in a round; `labels` are `(n,)` and below `classes`, `sizes` are `(clients,)`."""

    def __init__(self, partition: Partition, labels: Int64, classes: int, sizes: Int64, seed: int) -> None:
        self._partition, self._labels, self._classes = partition, labels, classes
        self._sizes, self._seed = sizes, seed
        self._latest: tuple[tuple[int, tuple[int, ...]], Placed] | None = None

    def of(self, client: int) -> Int64:
        """Refuse: nothing belongs to a client for longer than a round. Raises TypeError."""
        raise TypeError("the data are dealt anew in every round: ask for the holdings of one")

    def among(self, version: int, active: tuple[int, ...]) -> Placed:
        """Return who of the `active` clients holds what in round `version`; chunk after chunk asks for the same."""
        key = version, active
        if self._latest is None or self._latest[0] != key:
            seed = int(stream(self._seed, Purpose.REALLOCATION, 0, version).integers(2**63))
            split = self._partition.split(self._labels, self._classes, self._sizes[list(active)], seed)
            self._latest = key, Placed(split, active)
        return self._latest[1]
