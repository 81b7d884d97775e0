"""A share of the test samples put aside for validation: settings are chosen by these, and the others stay unseen.

The share is drawn from one stream whatever the seed of a run. If it depended on the seed, a mean over seeds would
choose by samples that are test samples of another seed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedactors.data.base import Data, Info
from fedactors.errors import ScenarioError
from fedactors.streams import Purpose, stream

_SEED = 0  # of every run
_BOTH = "the data have a part for validation already (accepted: that one, without task.validation, or data without it)"


def info_with_validation(info: Info, share: float | None) -> Info:
    """Return what is known of the data once a share of their test samples is put aside; without a share, `info`.

    Raises ScenarioError if no sample would be left on one side, or if the data have a part for validation.
    """
    if share is None:
        return info
    if info.validation_size:
        raise ScenarioError(f"task.validation: found {share:g}, and {_BOTH}")
    count = _count(info.test_size, share)
    if not 0 < count < info.test_size:
        side = "for validation" if count == 0 else "to test on"
        raise ScenarioError(
            f"task.validation: {share:g} of {info.test_size:,} test samples leaves none {side} (accepted: a share of"
            " which each side has at least one sample)"
        )
    return replace(info, test_size=info.test_size - count, validation_size=count)


def with_validation(data: Data, share: float | None) -> Data:
    """Return the data with a share of their test samples put aside; without a share, `data`.

    The share is the same of each client's test samples, where these come by client, up to one sample; else of those
    that are like the clients' and like the central data, if there are such, and of each label among these. Raises
    ScenarioError if the data have a part for validation.
    """
    if share is None:
        return data
    if data.validation_y is not None:
        raise ScenarioError(f"task.validation: found {share:g}, and {_BOTH}")
    aside = _put_aside(data, _count(len(data.test_y), share))
    kept = np.concatenate([[0], np.cumsum(~aside)])  # before each sample
    central = data.test_central
    return replace(
        data,
        test_x=data.test_x[~aside],
        test_y=data.test_y[~aside],
        test_central=None if central is None else central[~aside],
        test_clients=None if data.test_clients is None else kept[data.test_clients],
        validation_x=data.test_x[aside],
        validation_y=data.test_y[aside],
        validation_central=None if central is None else central[aside],
    )


def _count(tests: int, share: float) -> int:
    """Return how many test samples are put aside."""
    return round(share * tests)


def _put_aside(data: Data, count: int) -> NDArray[np.bool_]:
    """Return which test samples are put aside, `(test samples,)`: every n-th of them in an order by client and label.

    Those of a client, and of these those of a label, follow one another in random order.
    """
    tests = len(data.test_y)
    draws = stream(_SEED, Purpose.VALIDATION)
    order = draws.permutation(tests)
    client = np.zeros(tests, np.int64)
    if data.test_clients is not None:
        owned = np.repeat(np.arange(len(data.test_clients) - 1), np.diff(data.test_clients))
        client[:] = len(data.test_clients) - 1  # of no client, if they come behind those of all clients
        client[: len(owned)] = owned
    central = np.zeros(tests, bool) if data.test_central is None else data.test_central
    strata = data.strata_of(data.test_y)
    order = order[np.lexsort((strata[order], central[order], client[order]))]  # keeps the order of equal ones
    places = ((np.arange(count) + draws.random()) * (tests / count)).astype(np.int64)
    aside = np.zeros(tests, bool)
    aside[order[np.minimum(places, tests - 1)]] = True
    return aside
