"""Shards: the samples in the order of their labels are cut into equal pieces, and every client gets a few.

Source: McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017: 200 shards of
300 digits, two for each of 100 clients, so that most have two labels. Samples of one label are shuffled before.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import PositiveInt

from fedactors.data.base import Data, Info, Int64
from fedactors.data.partitions.assignment import Split
from fedactors.data.partitions.partition import held_as_trained, refuse_other_labels
from fedactors.data.partitions.sizes import even
from fedactors.errors import ScenarioError
from fedactors.options import Options
from fedactors.streams import Purpose, stream


class ShardPartition(Options):
    """Every client gets `shards` pieces of the samples in the order of their labels."""

    name: Literal["shards"] = "shards"
    shards: PositiveInt = 2
    """Shards of each client."""

    def sizes(self, info: Info, clients: int, seed: int) -> Int64:
        """Return the samples of each client, `(clients,)`. Raises ScenarioError if there are fewer than shards."""
        refuse_other_labels(info, self.name)
        if self.shards * clients > info.train_size:
            raise ScenarioError(
                f'task.partition.shards: {self.shards * clients:,} shards, "{info.name}" has {info.train_size:,}'
                " samples (accepted: fewer shards, or fewer clients)"
            )
        return np.asarray(even(info.train_size, self.shards * clients)[self._given(clients, seed)].sum(axis=1))

    def split(self, labels: Int64, classes: int, sizes: Int64, seed: int) -> Split:
        """Return which samples each client holds; see `Partition.split`."""
        clients = len(sizes)
        shuffled = stream(seed, Purpose.PARTITION, 1).permutation(len(labels))
        order = shuffled[np.argsort(labels[shuffled], kind="stable")]
        bounds = np.concatenate([[0], np.cumsum(even(len(labels), self.shards * clients))])
        pieces = np.split(order, bounds[1:-1])
        indices = np.concatenate([pieces[shard] for shard in self._given(clients, seed).ravel().tolist()])
        return Split(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), indices.astype(np.int64))

    def holdout(self, data: Data, clients: int, seed: int) -> Split:
        """Return which test samples each client holds out: of each label the part that it has in training."""
        return held_as_trained(self, data, clients, seed)

    def _given(self, clients: int, seed: int) -> Int64:
        """Return the shards of each client, `(clients, shards)`."""
        return stream(seed, Purpose.PARTITION).permutation(self.shards * clients).reshape(clients, self.shards)
