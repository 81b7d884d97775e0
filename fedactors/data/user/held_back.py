"""A share of the samples kept apart for testing, of each client if the data come by client."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedactors.data.user.arrays import AnyArray
from fedactors.errors import DataError
from fedactors.streams import Purpose, stream


def held_back(count: int, share: float, owners: AnyArray | None, seed: int, where: str) -> NDArray[np.bool_]:
    """Return which of `count` samples test, `(count,)`: drawn at random, `share` of them or of each owner's.

    An owner keeps at least one sample for training. Raises DataError if then nothing is left to test on.
    """
    order = stream(seed, Purpose.DATASET).permutation(count)
    groups = np.zeros(count, np.int64) if owners is None else np.unique(owners, return_inverse=True)[1].reshape(-1)
    order = order[np.argsort(groups[order], kind="stable")]
    sizes = np.bincount(groups)
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rank = np.arange(count) - np.repeat(begins, sizes)
    wanted = np.minimum(np.rint(share * sizes), sizes - 1)
    chosen = np.zeros(count, dtype=bool)
    chosen[order] = rank < np.repeat(wanted, sizes)
    if not chosen.any():
        raise DataError(f"{where}: test_share: {share} of {count:,} samples is none (accepted: a larger share)")
    return chosen
