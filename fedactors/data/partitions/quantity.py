"""Quantity skew: clients hold unequally many samples of the same mixture (Li et al., Non-IID Data Silos, ICDE 2022)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import PositiveInt

from fedactors.data.base import Data, Info, Int64
from fedactors.data.partitions.assignment import Split
from fedactors.data.partitions.partition import one_pool
from fedactors.data.partitions.sizes import Concentration, dirichlet_sizes
from fedactors.errors import ScenarioError
from fedactors.options import Options
from fedactors.streams import Purpose


class QuantityPartition(Options):
    """Clients' shares of all samples are drawn from a symmetric Dirichlet law, the samples from one pool."""

    name: Literal["quantity"] = "quantity"
    alpha: Concentration
    """Concentration: the smaller, the more unequal."""
    least: PositiveInt = 1
    """Samples that every client has at the least."""

    def sizes(self, info: Info, clients: int, seed: int) -> Int64:
        """Return the samples of each client, `(clients,)`. Raises ScenarioError if the data are too few."""
        if self.least * clients > info.train_size:
            raise ScenarioError(
                f'task.partition.least: {self.least * clients:,} samples for {clients:,} clients, "{info.name}" has'
                f" {info.train_size:,} (accepted: at most {info.train_size // clients:,})"
            )
        return dirichlet_sizes(self.alpha, info.train_size, clients, seed, self.least)

    def split(self, labels: Int64, classes: int, sizes: Int64, seed: int) -> Split:
        """Return which samples each client holds; see `Partition.split`."""
        return one_pool(labels, sizes, seed, replace=False, purpose=Purpose.PARTITION)

    def holdout(self, data: Data, clients: int, seed: int) -> Split:
        """Return which test samples each client holds out, as unequally many as training samples."""
        tests = len(data.test_y)
        sizes = dirichlet_sizes(self.alpha, tests, clients, seed, min(self.least, tests // clients))
        return one_pool(np.zeros(tests, np.int64), sizes, seed, replace=False, purpose=Purpose.HOLDOUT)
