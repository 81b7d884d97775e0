"""Joins training, test and validation samples of the user into a `Data`, and works out its `Info`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

import numpy as np

from fedactors.data.base import Data, Float32, Info, InputPart, Int64, TestedClients
from fedactors.data.user.arrays import Integers, finite, input_part
from fedactors.data.user.labels import LabelRules, labels_of
from fedactors.data.user.parts import RawParts
from fedactors.data.user.raw_part import RawPart
from fedactors.errors import DataError


@dataclass(frozen=True)
class Form:
    """What a scenario says of the form of samples."""

    called: str  # what to call the data in messages
    integers: Integers = "identifiers"
    shape: tuple[int, ...] | None = None
    rules: LabelRules = field(default_factory=LabelRules)


class LoadedData(NamedTuple):
    """Data and what is known of them."""

    info: Info
    data: Data


def assembled(parts: RawParts, form: Form, name: str) -> LoadedData:
    """Return the data of all parts. Raises DataError, one message, if they do not go together."""
    where = form.called
    train, test = parts.train, parts.test
    read = {which: _inputs(part, f"{where}: {which}", form) for which, part in parts.there.items()}
    x, inputs = read["train"]
    _check_inputs({which: found for which, (_, found) in read.items()}, where)
    tokens = inputs[0].shape if len(inputs) == 1 and inputs[0].integer else None
    labels = labels_of(
        [part.labels for part in parts.there.values()],
        replace(form.rules, tokens=tokens, where=where, classes=form.rules.classes or train.classes),
    )
    y, test_y, *further = labels.parts
    data = Data(x, y, read["test"][0], test_y, labels.classes)
    if further:
        data = replace(data, validation_x=read["validation"][0], validation_y=further[0])
    data = replace(data, kind=labels.kind, weights=_weights(train, where), label_names=labels.names)
    data, test_clients = by_client(data, train, test)
    info = Info(
        name,
        len(data.y),
        len(data.test_y),
        data.x.shape[1:],
        data.classes,
        _class_counts(data),
        None if data.clients is None else np.diff(data.clients),
        data.y.shape[1:],
        inputs=inputs,
        kind=data.kind,
        weighted=data.weights is not None,
        test_clients=test_clients,
        validation_size=sum(map(len, further)),
        tests_by_seed=parts.tests_by_seed,
    )
    return LoadedData(info, data)


def _class_counts(data: Data) -> tuple[int, ...] | None:
    """Return the training samples of each class; None if labels are no classes."""
    return tuple(np.bincount(data.strata, minlength=data.classes).tolist()) if data.kind == "class" else None


def _check_inputs(inputs: Mapping[str, tuple[InputPart, ...]], where: str) -> None:
    """Raise DataError if the samples of another part have other inputs than those for training."""
    train = inputs["train"]
    for which, found in inputs.items():
        if [part[:2] for part in train] != [part[:2] for part in found]:
            raise DataError(
                f"{where}: training samples have {_described(train)}, {which} samples {_described(found)}"
                " (accepted: the same)"
            )


def by_client(data: Data, train: RawPart, test: RawPart) -> tuple[Data, TestedClients | None]:
    """Return the data with one client's samples after the other's, clients by sorted key, and whose test samples are.

    As they are, and None, where training samples have no owners. Test samples of clients without training samples come
    last: they are in the test set, and no client's.
    """
    if train.owners is None:
        return data, None
    names = np.unique(train.owners)
    order, bounds = _grouped(np.searchsorted(names, train.owners), len(names))
    data = replace(
        data,
        x=data.x[order],
        y=data.y[order],
        clients=bounds,
        weights=None if data.weights is None else data.weights[order],
        client_names=tuple(map(str, names.tolist())),
    )
    if test.owners is None:
        return data, TestedClients(0)
    place = {str(name): number for number, name in enumerate(names.tolist())}  # 1 in training may be "1" in testing
    found, codes = np.unique(test.owners, return_inverse=True)
    places = np.array([place.get(str(name), len(names)) for name in found.tolist()], np.int64)[codes]
    untrained = tuple(str(name) for name in found.tolist() if str(name) not in place)
    whose = TestedClients(len(found) - len(untrained), untrained, int(np.count_nonzero(places == len(names))))
    if not whose.known:
        return data, whose
    order, bounds = _grouped(places, len(names) + 1)
    return replace(data, test_x=data.test_x[order], test_y=data.test_y[order], test_clients=bounds[:-1]), whose


def _grouped(codes: Int64, count: int) -> tuple[Int64, Int64]:
    bounds = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=count))]).astype(np.int64)
    return np.argsort(codes, kind="stable"), bounds


def _inputs(part: RawPart, where: str, form: Form) -> tuple[Float32, tuple[InputPart, ...]]:
    """Return the samples of a part as one array, and what they consist of."""
    read = [input_part(name, array, where, form.integers) for name, array in part.inputs]
    parts = tuple(known for _, known in read)
    if form.shape is not None:
        read, parts = (
            [(_reshaped(read[0][0], form.shape, where, len(read)), parts[0])],
            (parts[0]._replace(shape=form.shape),),
        )
    if len(read) == 1:
        return read[0][0], parts
    shapes = [array.shape[1:] for _, array in part.inputs]  # of one number (), as a DataLoader of torch gives it
    parts = tuple(known._replace(shape=shape) for known, shape in zip(parts, map(tuple, shapes), strict=True))
    return np.concatenate([array.reshape(len(array), -1) for array, _ in read], axis=1), parts


def _reshaped(x: Float32, shape: tuple[int, ...], where: str, inputs: int) -> Float32:
    if inputs > 1 or prod(x.shape[1:]) != prod(shape):
        found = f"{inputs} inputs" if inputs > 1 else f"samples of shape {x.shape[1:]}"
        raise DataError(f"{where}: shape: {found} cannot become {shape} (accepted: as many numbers)")
    return x.reshape(len(x), *shape)


def _weights(train: RawPart, where: str) -> Float32 | None:
    """Return the weights of training samples. Raises DataError if they are no such."""
    if train.weights is None:
        return None
    weights = np.asarray(train.weights)
    if weights.shape not in ((len(train),), (len(train), 1)) or weights.dtype.kind == "U":
        raise DataError(f"{where}: weights of shape {weights.shape} (accepted: one number for each training sample)")
    found = finite(weights.reshape(-1), f"{where}: train", "weight")
    if (found < 0).any() or not found.any():
        raise DataError(f"{where}: weights from {found.min()} to {found.max()} (accepted: 0 or more, not all 0)")
    return found


def _described(inputs: tuple[InputPart, ...]) -> str:
    return ", ".join(f"{part.name or 'an input'} of shape {part.shape}" for part in inputs)
