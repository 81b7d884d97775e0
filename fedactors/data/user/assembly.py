"""Joins training and test samples of the user into a `Data`, and works out its `Info`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

import numpy as np

from fedactors.data.base import Data, Float32, Info, InputPart, Int64
from fedactors.data.user.arrays import Integers, finite, input_part
from fedactors.data.user.labels import LabelRules, labels_of
from fedactors.data.user.samples import RawPart
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


def assembled(train: RawPart, test: RawPart, form: Form, name: str) -> LoadedData:
    """Return the data of both parts. Raises DataError, one message, if they do not go together."""
    where = form.called
    x, inputs = _inputs(train, f"{where}: train", form)
    test_x, test_inputs = _inputs(test, f"{where}: test", form)
    if [part[:2] for part in inputs] != [part[:2] for part in test_inputs]:
        raise DataError(
            f"{where}: training samples have {_described(inputs)}, test samples {_described(test_inputs)}"
            " (accepted: the same)"
        )
    tokens = inputs[0].shape if len(inputs) == 1 and inputs[0].integer else None
    labels = labels_of(
        train.labels,
        test.labels,
        replace(form.rules, tokens=tokens, where=where, classes=form.rules.classes or train.classes),
    )
    data = Data(x, labels.y, test_x, labels.test_y, labels.classes)
    data = replace(data, kind=labels.kind, weights=_weights(train, where), label_names=labels.names)
    data = by_client(data, train, test)
    counts = tuple(np.bincount(data.strata, minlength=data.classes).tolist()) if data.kind == "class" else None
    info = Info(
        name,
        len(data.y),
        len(data.test_y),
        data.x.shape[1:],
        data.classes,
        counts,
        None if data.clients is None else np.diff(data.clients),
        data.y.shape[1:],
        inputs=inputs,
        kind=data.kind,
        weighted=data.weights is not None,
    )
    return LoadedData(info, data)


def by_client(data: Data, train: RawPart, test: RawPart) -> Data:
    """Return the data with one client's samples after the other's, clients by sorted key; as they are without owners.

    Test samples come by client where all of them are of clients that also train.
    """
    if train.owners is None:
        return data
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
        return data
    place = {str(name): number for number, name in enumerate(names.tolist())}  # 1 in training may be "1" in testing
    found, codes = np.unique(test.owners, return_inverse=True)
    places = [place.get(str(name)) for name in found.tolist()]
    if None in places:
        return data
    order, bounds = _grouped(np.array(places, np.int64)[codes], len(names))
    return replace(data, test_x=data.test_x[order], test_y=data.test_y[order], test_clients=bounds)


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
