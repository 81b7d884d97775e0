"""A data set before it is loaded, `Info`, and once it is loaded, `Data`.

The clock needs `Info` only, which costs nothing; training needs `Data`. A data set is an `Options`
class with a `name`, `info`, `check` and `load`; see `digits` for the shortest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import DataError

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
LabelArray = NDArray[Any]  # int64; float32 for the kinds "value" and "multi-label"
LabelKind = Literal["class", "value", "sequence", "multi-label"]


class InputPart(NamedTuple):
    """One input of a sample. The parts of a sample with several inputs lie one after the other in a flat `x`."""

    name: str  # keyword of a model's `forward`; empty for an input by position
    shape: tuple[int, ...]
    integer: bool = False  # identifiers, which are exact in float32 up to 2**24


class TestedClients(NamedTuple):
    """Whose the test samples are, of data that come by client."""

    known: int  # clients with test samples that have training samples too
    untrained: tuple[str, ...] = ()  # those that have none: what the data call them, in order
    samples: int = 0  # of those; they are in the test set, and no client's


@dataclass(frozen=True)
class Info:
    """What is known of a data set without loading it."""

    name: str
    train_size: int
    test_size: int
    input_shape: tuple[int, ...]
    classes: int
    class_counts: tuple[int, ...] | None = None  # training samples of each class
    client_sizes: Int64 | None = field(default=None, compare=False)  # (clients,), if the data come by client
    label_shape: tuple[int, ...] = ()  # of one sample's labels: () for one of them
    central_size: int = 0  # samples that are meant for a central learner and lie at no client
    client_rows: Int64 | None = field(default=None, compare=False)  # (clients,): table rows that a client's data name
    inputs: tuple[InputPart, ...] = ()  # what a sample consists of; empty: one input of floats, of `input_shape`
    kind: LabelKind = "class"
    weighted: bool = False  # whether each training sample has a weight of its own
    variants: int = 1  # in which each training sample is kept
    test_clients: TestedClients | None = None  # None: not known before the data are loaded, or no data by client
    validation_size: int = 0  # samples by which settings are chosen and runs end; none of them is a test sample
    tests_by_seed: bool = True  # whether another seed may have other test samples; False where all have the same

    @property
    def outputs(self) -> int:
        """How many numbers a model answers for a sample, or for a place of a sequence."""
        return max(1, prod(self.label_shape)) if self.kind == "value" else self.classes

    @property
    def evaluated_size(self) -> int:
        """How many samples the server evaluates a model on."""
        return self.test_size + self.validation_size


class LabelledSamples(NamedTuple):
    """Samples of one owner: the server, a central learner or a client."""

    x: Float32  # (n, *input_shape)
    y: LabelArray  # (n,)
    weights: Float32 | None = None  # (n,), how much each counts in its batch; None if all count the same


@dataclass(frozen=True, eq=False)
class Data:
    """A data set in memory.

    `x` is `(n, *input_shape)` float32, `y` is `(n,)` int64 with labels below `classes`. Data that come by
    client lie one client after the other: client k has the samples `clients[k] <= i < clients[k + 1]`, and of
    the test samples those between `test_clients[k]` and `test_clients[k + 1]`; test samples of no client come
    last. Data of two sources have further samples for a central learner, `central_x`, `central_y` and their weights;
    `test_central` says which test samples are like those. `validation_x`, `validation_y` and `validation_central` are
    the same of a part for validation.

    Labels of the kind "value" are float32, `(n,)` or `(n, values)`, those of the kind "multi-label" float32 of 0 and 1,
    `(n, classes)`, those of the kind "sequence" int64, `(n, places)`.
    """

    x: Float32
    y: LabelArray
    test_x: Float32
    test_y: LabelArray
    classes: int
    clients: Int64 | None = None  # (clients + 1,)
    test_clients: Int64 | None = None  # (clients + 1,); None if no test sample is of a client
    central_x: Float32 | None = None  # (n_0, *input_shape)
    central_y: Int64 | None = None  # (n_0,)
    test_central: NDArray[np.bool_] | None = None  # (test samples,)
    kind: LabelKind = "class"
    weights: Float32 | None = None  # (n,), of training samples
    central_weights: Float32 | None = None  # (n_0,)
    client_names: tuple[str, ...] = ()  # what the data call their clients, in order
    label_names: tuple[str, ...] = ()  # what the data call their labels, in order
    variants: Float32 | None = None  # (variants * n, *input_shape): training samples transformed at random, see `task`
    validation_x: Float32 | None = None  # (validation samples, *input_shape); None if there is no such part
    validation_y: LabelArray | None = None  # (validation samples,)
    validation_central: NDArray[np.bool_] | None = None  # (validation samples,)

    @property
    def strata(self) -> Int64:
        """What partitions tell training samples apart by, `(n,)`: their labels; all 0 where these are no classes."""
        return self.strata_of(self.y)

    @property
    def strata_count(self) -> int:
        """How many there may be."""
        return self.classes if self.kind == "class" and self.y.ndim == 1 else 1

    def strata_of(self, y: LabelArray) -> Int64:
        """Return the same for any labels of these data; negative ones, which no loss counts, go with label 0."""
        if self.strata_count == 1:
            return np.zeros(len(y), np.int64)
        return np.maximum(y.astype(np.int64, copy=False), 0)

    def samples(self, rows: Int64) -> LabelledSamples:
        """Return copies of training samples."""
        return LabelledSamples(self.x[rows], self.y[rows], None if self.weights is None else self.weights[rows])


def joined_weights(*parts: tuple[Float32 | None, int]) -> Float32 | None:
    """Return the weights of parts one after the other, each given with its samples; None if no part has any.

    Samples of a part without weights count by 1.
    """
    if all(weights is None for weights, _ in parts):
        return None
    return np.concatenate([np.ones(count, np.float32) if weights is None else weights for weights, count in parts])


class Dataset(Protocol):
    """A data set that a scenario may name. `clients` matters only to data that are made client by client.

    One that finds its files otherwise than by options of the type `ScenarioPath` may have `named_files()`, which
    returns their paths by what the scenario calls them: a study knows by their contents which runs it has.
    """

    name: str

    def info(self, seed: int, clients: int) -> Info:
        """Return what is known without loading anything."""
        ...

    def check(self) -> None:
        """Check that the files are there. Raises DataError if one is missing."""
        ...

    def load(self, seed: int, clients: int) -> Data:
        """Return the data. Raises DataError if they cannot be read or are not what `info` says."""
        ...


class SourceSplit(Protocol):
    """A way to divide a data set between the clients and a central learner that a scenario may name."""

    @property
    def name(self) -> str:
        """The name that a scenario uses."""
        ...

    def info(self, info: Info) -> Info:
        """Return what is known of the divided data. Raises ScenarioError if they cannot be divided."""
        ...

    def apply(self, data: Data) -> Data:
        """Return the divided data."""
        ...


def verified(data: Data, info: Info) -> Data:
    """Return `data` if they agree with `info`.

    Raises DataError if sizes, shapes or class counts differ: the clock has used them already.
    """
    _agree(info.name, "training samples", len(data.y), info.train_size)
    _agree(info.name, "training images", data.x.shape, (info.train_size, *info.input_shape))
    _agree(info.name, "test samples", len(data.test_y), info.test_size)
    _agree(info.name, "test images", data.test_x.shape, (info.test_size, *info.input_shape))
    for which, labels in (("training", data.y), ("test", data.test_y)):
        if len(labels) and not 0 <= labels.min() <= labels.max() < info.classes:
            found = f"{labels.min()} to {labels.max()}"
            raise DataError(f'data set "{info.name}": {which} labels: found {found}, accepted 0 to {info.classes - 1}')
    counts = tuple(np.bincount(data.y, minlength=info.classes).tolist())
    if info.class_counts is not None:
        _agree(info.name, "training samples of each class", counts, info.class_counts)
    return data


def _agree(name: str, what: str, found: int | Sequence[int], wanted: int | Sequence[int]) -> None:
    if found != wanted:
        raise DataError(f'data set "{name}": {what}: found {found}, accepted {wanted}')
