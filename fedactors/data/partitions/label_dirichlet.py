"""Each label's samples split over the clients by a Dirichlet law, so that also sizes of clients differ.

Source: Li et al., Federated Learning on Non-IID Data Silos: An Experimental Study, ICDE 2022, section 4.1
(distribution-based label imbalance), with two rules of the authors' code (NIID-Bench, partition_data), which Flower's
DirichletPartitioner has too: a client that has its equal part of all samples gets none of later labels, and all is
drawn anew until the smallest client has enough samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedactors.data.base import Int64
from fedactors.errors import ScenarioError
from fedactors.streams import Purpose, stream

Float64 = NDArray[np.float64]

LEAST = 10  # samples of a client, as in the authors' code
_TRIES = 1000
_NUMBERS = 5e7  # drawn in all tries: about two seconds
_WHERE = "task.partition"


def label_shares(alpha: float, counts: Int64, clients: int, least: int, seed: int) -> Int64:
    """Return how many samples of each label each client gets, `(clients, labels)`, of `counts`, `(labels,)`.

    All samples are given away. Raises ScenarioError if no draw gives each client `least` samples.
    """
    total = int(counts.sum())
    if least * clients > total:
        raise ScenarioError(
            f"{_WHERE}.least: {least * clients:,} samples for {clients:,} clients, the data have {total:,} (accepted:"
            f" at most {total // clients:,})"
        )
    draws = stream(seed, Purpose.PARTITION)
    tries = int(max(10, min(_TRIES, _NUMBERS // (clients * len(counts)))))
    best = 0
    for _ in range(tries):
        shares = _drawn(alpha, counts, clients, draws)
        smallest = int(shares.sum(1).min())
        if smallest >= least:
            return shares
        best = max(best, smallest)
    least_there = f"least: {best}, " if best else ""
    raise ScenarioError(
        f"{_WHERE}.least: in {tries:,} draws the smallest of {clients:,} clients had at most {best:,} samples"
        f" (accepted: {least_there}alpha above {alpha:g}, or fewer clients)"
    )


def _drawn(alpha: float, counts: Int64, clients: int, draws: np.random.Generator) -> Int64:
    """Return one draw of shares, `(clients, labels)`."""
    shares = np.zeros((clients, len(counts)), np.int64)
    equal = counts.sum() / clients
    sizes = np.zeros(clients, np.int64)
    for label, count in enumerate(counts.tolist()):
        wanted = draws.dirichlet(np.full(clients, alpha))
        open_ = sizes < equal
        usable = np.where(open_, wanted, 0.0)
        if usable.sum() < 1e-200:  # all that was drawn is for clients that have enough
            usable = open_.astype(np.float64) if open_.any() else np.ones(clients)
        shares[:, label] = cut(usable / usable.sum(), count)
        sizes += shares[:, label]
    return shares


def cut(shares: Float64, count: int) -> Int64:
    """Return `count` samples cut at the sums of `shares`, `(clients,)`, which add up to 1; rounded down, as there."""
    bounds = np.minimum((np.cumsum(shares) * count).astype(np.int64), count)
    bounds[-1] = count
    return np.diff(bounds, prepend=0)
