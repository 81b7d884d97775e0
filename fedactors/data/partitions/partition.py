"""How a data set is spread over clients.

A partition has two functions. `sizes` returns how many samples each client holds, from the data set's `Info` alone: the
clock needs it and has no labels. `split` returns which samples, and keeps to exactly those sizes. Both are pure
functions of the seed.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt, PrivateAttr

from fedactors.data.base import Data, Info
from fedactors.data.partitions.assignment import Split, assign, assign_alike, supplied
from fedactors.data.partitions.sizes import Samples, drawn, even
from fedactors.errors import DataError, ScenarioError
from fedactors.options import Options
from fedactors.streams import Purpose, stream

Int64 = NDArray[np.int64]

_WHERE = "task.partition"


class Spread(Protocol):
    """A way to spread samples over clients."""

    def sizes(self, info: Info, clients: int, seed: int) -> Int64:
        """Return the samples of each client, `(clients,)`. Raises ScenarioError if the data are too few."""
        ...

    def split(self, labels: Int64, classes: int, sizes: Int64, seed: int) -> Split:
        """Return which samples each client holds, for `labels` `(n,)` below `classes`.

        `sizes` is what `sizes` returned. Raises ScenarioError if a label has too few samples, DataError if
        the labels are not those that the data set announced.
        """
        ...


class Partition(Spread, Protocol):
    """A way to spread data over clients that a scenario may name."""

    name: str

    def holdout(self, data: Data, clients: int, seed: int) -> Split:
        """Return which test samples each client holds out. Raises ScenarioError if a label has too few."""
        ...


@runtime_checkable
class Reassignable(Protocol):
    """A partition that can assign the data anew in every round."""

    @property
    def reallocate(self) -> bool:
        """Whether it does."""
        ...

    def check_rounds(self, info: Info, sizes: Int64, asked: int) -> None:
        """Check that the data suffice for any `asked` clients of a round. Raises ScenarioError if not."""
        ...


def held_out(alike: Spread, data: Data, clients: int, seed: int) -> Split:
    """Return which test samples each client holds out, if test samples are spread as `alike` does."""
    labels = data.strata_of(data.test_y)
    counts = tuple(np.bincount(labels, minlength=data.strata_count).tolist())
    info = Info("test set", len(data.test_y), 0, data.test_x.shape[1:], data.classes, counts, kind=data.kind)
    return alike.split(labels, data.strata_count, alike.sizes(info, clients, seed), seed)


def held_as_trained(spread: Spread, data: Data, clients: int, seed: int) -> Split:
    """Return which test samples each client holds out: of each label the part that it has in training, all once."""
    trained, classes = data.strata, data.strata_count
    counts = tuple(np.bincount(trained, minlength=classes).tolist())
    info = Info("training set", len(trained), 0, data.x.shape[1:], data.classes, counts, kind=data.kind)
    split = spread.split(trained, classes, spread.sizes(info, clients, seed), seed)
    return assign_alike(split, trained, data.strata_of(data.test_y), classes, seed)


def refuse_other_labels(info: Info, name: str) -> None:
    """Raise ScenarioError if the labels of the data are no classes, by which samples could be told apart."""
    if info.kind != "class":
        raise ScenarioError(
            f'{_WHERE}: "{name}" tells samples apart by their label, and "{info.name}" has labels of the kind'
            f" {info.kind} (accepted: iid, quantity or natural)"
        )


def check_announced(counts: Int64, shares: Int64, sizes: Int64) -> None:
    """Refuse labels, `(labels,)` of each, of which clients get other sizes than those announced, `(clients,)`.

    `shares` are what clients get of each label, `(clients, labels)`. Raises DataError.
    """
    if not np.array_equal(shares.sum(axis=1), sizes):
        raise DataError(f"{_WHERE}: labels found {counts.tolist()} times, accepted: as announced by the data set")


def one_pool(labels: Int64, sizes: Int64, seed: int, *, replace: bool, purpose: Purpose) -> Split:
    """Return the split in which every client draws from all data alike."""
    pool, hosted = np.zeros_like(labels), np.zeros((len(sizes), 1), dtype=np.int64)
    return assign(pool, hosted, sizes[:, None], seed, replace=replace, purpose=purpose)


class AssignedPartition(Options):
    """Options of the partitions that assign samples to clients."""

    samples: Samples | None = None
    """Samples of each client: a number, or a law. If not given, all data are shared out, evenly."""
    replace: bool = False
    """Where samples run out, draw from them again with replacement, instead of refusing."""
    reallocate: bool = False
    """Assign all data anew in every round, to the clients that are asked; each gets as many samples as before."""
    test_samples: PositiveInt | None = None
    """Test samples that each client holds out, of its own labels, where the test set follows the members; if not given,
    the test set is shared out as training samples are that are not counted."""
    _purpose: Purpose = PrivateAttr(default=Purpose.PARTITION)

    def holdout(self, data: Data, clients: int, seed: int) -> Split:
        """Return which test samples each client holds out; see `Partition.holdout`."""
        alike = self.model_copy(update={"samples": self.test_samples, "reallocate": False})
        alike._purpose = Purpose.HOLDOUT
        return held_out(alike, data, clients, seed)

    def split(self, labels: Int64, classes: int, sizes: Int64, seed: int) -> Split:
        """Return which samples each client holds; see `Partition.split`."""
        raise NotImplementedError

    def sizes(self, info: Info, clients: int, seed: int) -> Int64:
        """Return the samples of each client, `(clients,)`. Raises ScenarioError if the data are too few."""
        if self.samples is None:
            return even(info.train_size, clients)
        sizes = drawn(self.samples, clients, seed)
        return sizes if self.reallocate else self.enough(info, sizes)

    def enough(self, info: Info, sizes: Int64) -> Int64:
        """Return `sizes`. Raises ScenarioError if the data are too few for clients of those sizes at once."""
        wanted, clients = int(sizes.sum()), len(sizes)
        if wanted > info.train_size and not self.replace:
            raise ScenarioError(
                f'{_WHERE}.samples: {wanted:,} wanted by {clients:,} clients, "{info.name}" has '
                f"{info.train_size:,}; accepted: fewer samples, fewer clients, or replace: true"
            )
        return sizes

    def check_rounds(self, info: Info, sizes: Int64, asked: int) -> None:
        """Look whether the data suffice for any `asked` clients of a round. Raises ScenarioError if not."""
        self.enough(info, np.sort(sizes)[-asked:])


class IidPartition(AssignedPartition):
    """Every client draws from all data alike."""

    name: Literal["iid"] = "iid"

    def split(self, labels: Int64, classes: int, sizes: Int64, seed: int) -> Split:
        """Return which samples each client holds; see `Partition.split`."""
        return one_pool(labels, sizes, seed, replace=self.replace, purpose=self._purpose)


class ClassPartition(AssignedPartition):
    """Every client holds samples of `classes` labels, as many of each (McMahan et al. 2017, made exact).

    Balanced: the labels and the clients are permuted at random, and client number j takes the next `classes`
    labels of the endless repetition of that permutation; so labels are hosted by equally many clients, give
    or take one. With `samples`, a client's samples are cut evenly over its labels, and its first labels get
    one more. Without, the samples of each label are cut evenly over the clients that host it; then sizes
    follow the data set's class counts.
    """

    name: Literal["classes"] = "classes"
    classes: PositiveInt
    """Labels per client."""
    balanced: bool = True
    """Host every label equally often; if not, each client draws its labels by itself (Ruan et al. 2021)."""

    def sizes(self, info: Info, clients: int, seed: int) -> Int64:
        """Return the samples of each client, `(clients,)`.

        Raises ScenarioError if a label has too few samples or, without `samples`, no client.
        """
        refuse_other_labels(info, self.name)
        if self.reallocate and self.samples is None:
            raise ScenarioError(f"{_WHERE}.samples: reallocate needs the number of samples of each client")
        hosted = self.hosted(info.classes, clients, seed)
        asked = super().sizes(info, clients, seed)
        if info.class_counts is None and self.samples is None:
            raise ScenarioError(
                f'{_WHERE}.samples: "{info.name}" does not say how many samples each label has'
                "; accepted: a number or a law"
            )
        if info.class_counts is None or self.reallocate:
            return asked
        counts = np.array(info.class_counts, dtype=np.int64)
        shares = self._shares(counts, hosted, asked)
        supplied(counts, hosted, shares, replace=self.replace)
        return np.asarray(shares.sum(axis=1))

    def split(self, labels: Int64, classes: int, sizes: Int64, seed: int) -> Split:
        """Return which samples each client holds; see `Partition.split`."""
        hosted = self.hosted(classes, len(sizes), seed)
        counts = np.bincount(labels, minlength=classes)
        shares = self._shares(counts, hosted, sizes)
        check_announced(counts, shares, sizes)
        return assign(labels, hosted, shares, seed, replace=self.replace, purpose=self._purpose)

    def check_rounds(self, info: Info, sizes: Int64, asked: int) -> None:
        """Look whether each label has enough for all that may host it. Raises ScenarioError if not, or if unknown."""
        super().check_rounds(info, sizes, asked)
        hosts = -(-asked * self.classes // info.classes) if self.balanced else asked
        wanted = hosts * -(-int(sizes.max()) // self.classes)
        least = min(info.class_counts or (0,))
        if wanted > least and not self.replace:
            raise ScenarioError(
                f"{_WHERE}.reallocate: {wanted:,} samples of a label may be wanted in a round, and of one there are"
                f" {least:,} (accepted: fewer samples, a smaller cohort, or replace: true)"
            )

    def hosted(self, classes: int, clients: int, seed: int) -> Int64:
        """Return the distinct labels that each client holds, `(clients, labels per client)`.

        Raises ScenarioError if there are fewer than a client should have.
        """
        if self.classes > classes:
            raise ScenarioError(f"{_WHERE}.classes: found {self.classes}, accepted: at most {classes}, all there are")
        draws = stream(seed, Purpose.PARTITION)
        if not self.balanced:
            return draws.random((clients, classes)).argsort(axis=1)[:, : self.classes]
        labels, order = draws.permutation(classes), draws.permutation(clients)
        hosted = np.empty((clients, self.classes), dtype=np.int64)
        places = np.arange(clients * self.classes, dtype=np.int64) % classes
        hosted[order] = labels[places].reshape(clients, self.classes)
        return hosted

    def _shares(self, counts: Int64, hosted: Int64, sizes: Int64) -> Int64:
        """Return how many samples of each of its labels a client gets, of the shape of `hosted`.

        Test samples of labels that lie at no client are nobody's; no training sample may be lost.
        """
        if self.samples is not None:
            extra = np.arange(self.classes) < sizes[:, None] % self.classes
            return sizes[:, None] // self.classes + extra
        hosts = np.bincount(hosted.ravel(), minlength=len(counts))
        orphans = np.flatnonzero((hosts == 0) & (counts > 0))
        if len(orphans) and self._purpose is Purpose.PARTITION:
            raise ScenarioError(
                f"{_WHERE}: label {orphans[0]} lies at no client, {counts[orphans[0]]:,} samples are lost"
                "; accepted: more clients, more classes per client, or a number of samples"
            )
        return _even_cuts(counts, hosts, hosted)


def _even_cuts(counts: Int64, hosts: Int64, hosted: Int64) -> Int64:
    """Cut the samples of each label, `counts` `(classes,)`, over its hosts; the first ones get one more."""
    flat = hosted.ravel()
    by_label = np.argsort(flat, kind="stable")
    first = np.concatenate([[0], np.cumsum(hosts)[:-1]])
    rank = np.empty_like(flat)
    rank[by_label] = np.arange(len(flat)) - first[flat[by_label]]
    shares = counts[flat] // hosts[flat] + (rank < counts[flat] % hosts[flat])
    return shares.reshape(hosted.shape).astype(np.int64)
