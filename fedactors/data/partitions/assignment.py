"""Assigns samples to clients, given how many of each label every client gets.

Every partition calls `assign` as its last step. A pool is the shuffled samples of one label; its clients, in
ascending order, take consecutive runs of it. The partitions differ in the table of shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.data.holdings import Part, raw
from fedactors.errors import ScenarioError
from fedactors.streams import Purpose, stream

Int64 = NDArray[np.int64]


class Split(NamedTuple):
    """Which samples lie at which client: client k has `indices[offsets[k] : offsets[k + 1]]`."""

    offsets: Int64  # (clients + 1,)
    indices: Int64  # (samples assigned,)

    def of(self, client: int) -> Int64:
        """Return the samples of `client`, a view."""
        return self.indices[self.offsets[client] : self.offsets[client + 1]]

    def signature(self) -> Iterator[Part]:
        """Yield what it is identified by."""
        yield raw(self.offsets)
        yield raw(self.indices)


def assign(
    labels: Int64,
    hosted: Int64,
    shares: Int64,
    seed: int,
    *,
    replace: bool = False,
    purpose: Purpose = Purpose.PARTITION,
) -> Split:
    """Give client k `shares[k, u]` samples of label `hosted[k, u]`; both are `(clients, labels per client)`.

    No sample is given twice, unless `replace` is set and a pool is empty: then the rest is drawn from it
    again, with replacement. Raises ScenarioError if a label has too few samples.
    """
    classes = int(max(labels.max(initial=-1), hosted.max(initial=-1))) + 1
    wanted = supplied(np.bincount(labels, minlength=classes), hosted, shares, replace=replace)
    pools = [_pool(labels, label, int(count), seed, purpose) for label, count in enumerate(wanted)]
    by_label = np.argsort(hosted.ravel(), kind="stable")  # clients stay in ascending order
    lengths = shares.ravel()
    begins = np.empty_like(lengths)
    begins[by_label] = _offsets(lengths[by_label])[:-1]
    indices = np.concatenate(pools)[_ranges(begins, lengths)]
    return Split(_offsets(shares.sum(axis=1)), indices)


def assign_alike(split: Split, trained: Int64, labels: Int64, classes: int, seed: int) -> Split:
    """Give all samples of another part, with `labels` `(m,)`, to clients as `split` does those with `trained` `(n,)`.

    Of each label below `classes` a client gets the part that it has in `split`, by shares that are cut in the order of
    clients, so that no client gets a label that it does not have; a label that nobody has is spread evenly.
    """
    clients = len(split.offsets) - 1
    held = trained[split.indices]
    by_label = np.argsort(held, kind="stable")  # clients stay in ascending order
    holders = np.repeat(np.arange(clients, dtype=np.int64), np.diff(split.offsets))[by_label]
    bounds = _offsets(np.bincount(held, minlength=classes))
    pools, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for label, count in enumerate(np.bincount(labels, minlength=classes).tolist()):
        known = holders[bounds[label] : bounds[label + 1]]
        among = known if len(known) else np.arange(clients, dtype=np.int64)
        pools.append(_pool(labels, label, count, seed, Purpose.HOLDOUT))
        ends = np.arange(1, count + 1) * len(among)  # sample j of `count` goes with place ceil(j n / count) of n
        owners.append(among[-(-ends // count) - 1])
    owner = np.concatenate(owners)
    indices = np.concatenate(pools)[np.argsort(owner, kind="stable")]
    return Split(_offsets(np.bincount(owner, minlength=clients)), indices)


def contiguous(sizes: Int64) -> Split:
    """Return the split of samples that already lie client by client."""
    return Split(_offsets(sizes), np.arange(sizes.sum(), dtype=np.int64))


def supplied(available: Int64, hosted: Int64, shares: Int64, *, replace: bool) -> Int64:
    """Return how many samples of each label are wanted, if that many are `available`; both are `(classes,)`.

    With `replace` any label that has samples has enough. Raises ScenarioError if one has too few.
    """
    wanted = np.bincount(hosted.ravel(), weights=shares.ravel(), minlength=len(available)).astype(np.int64)
    short = (wanted > 0) & (available == 0) if replace else wanted > available
    if short.any():
        label = int(short.argmax())
        raise ScenarioError(
            f"task.partition: label {label}: {wanted[label]:,} samples wanted, {available[label]:,} available"
            "; accepted: fewer samples per client, fewer clients, or replace: true"
        )
    return wanted


def _pool(labels: Int64, label: int, wanted: int, seed: int, purpose: Purpose) -> Int64:
    """Return `wanted` samples of `label` in random order: all different while they last."""
    if not wanted:
        return np.empty(0, dtype=np.int64)
    draws = stream(seed, purpose, 1 + label)
    members = draws.permutation(np.flatnonzero(labels == label))
    missing = max(0, wanted - len(members))
    again = members[draws.integers(len(members), size=missing)]
    return np.concatenate([members[:wanted], again]).astype(np.int64)


def _offsets(lengths: Int64) -> Int64:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _ranges(begins: Int64, lengths: Int64) -> Int64:
    """Return begins[0], begins[0] + 1, ... for lengths[0] numbers, then the same from begins[1], ..."""
    shift = begins - _offsets(lengths)[:-1]
    return np.repeat(shift, lengths) + np.arange(lengths.sum(), dtype=np.int64)
