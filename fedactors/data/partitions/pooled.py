"""All data in one place, the clients' and the central learner's: what an oracle would train on.

Source: Augenstein et al., Mixed Federated Learning, 2022, figure 1, where mixed methods are compared with a model that
is trained centrally on both sources. One device holds everything, so plain SGD is FedAvg with it alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from fedactors.data.base import Data, Info, Int64, joined_weights
from fedactors.options import Options


class Pooled(Options):
    """Both sources at one client (`partition: natural`, a population of one) and nothing at the centre."""

    name: Literal["pooled"] = "pooled"

    def info(self, info: Info) -> Info:
        """Return what is known of the pool."""
        total = info.train_size + info.central_size
        counts = None if info.central_size else info.class_counts
        whole = np.array([total], dtype=np.int64)
        return replace(
            info,
            train_size=total,
            class_counts=counts,
            client_sizes=whole,
            central_size=0,
            client_rows=None,
            test_clients=None,
        )

    def apply(self, data: Data) -> Data:
        """Return the pool, the clients' samples first; test samples stay, each known by its source."""
        pool = data
        if data.central_x is not None and data.central_y is not None:
            pool = replace(
                data,
                x=np.concatenate([data.x, data.central_x]),
                y=np.concatenate([data.y, data.central_y]),
                weights=joined_weights((data.weights, len(data.y)), (data.central_weights, len(data.central_y))),
            )
        bounds: Int64 = np.array([0, len(pool.y)], dtype=np.int64)
        pool = replace(pool, clients=bounds, test_clients=None)
        return replace(pool, central_x=None, central_y=None, central_weights=None)
