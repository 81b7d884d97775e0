"""What a data set of another package gives, in the types that everything else counts on.

Samples become float32 and labels int64: arrays of other types, tensors of torch and lists are accepted where no value
changes by it. What is no such is refused here, in one message.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.data.base import Data, Float32, Int64, LabelArray
from fedactors.errors import DataError

_ACCEPTED = "arrays, tensors or lists of numbers, samples as floats and labels as whole numbers from 0"


def accepted(data: Any, name: str, *, whole: bool = True, ignored: int | None = None) -> Data:
    """Return `data`, which the data set `name` has loaded, with the types of `Data`; labels `whole` numbers, or any.

    Whole ones are below the number of classes, or `ignored`.

    Raises DataError if it is no `Data`, if numbers would change, or if test or validation samples hold NaN or Inf.
    """
    if not isinstance(data, Data):
        kind = type(data).__name__
        raise DataError(f'data set "{name}": load returns {kind} (accepted: fedactors.data.base.Data)')
    labels_of = partial(_labels, classes=data.classes, ignored=ignored) if whole else _values
    found = replace(
        data,
        x=_samples(data.x, name, "training samples"),
        y=labels_of(data.y, name, "training labels"),
        test_x=_samples(data.test_x, name, "test samples"),
        test_y=labels_of(data.test_y, name, "test labels"),
    )
    if data.validation_x is not None:
        found = replace(
            found,
            validation_x=_samples(data.validation_x, name, "validation samples"),
            validation_y=labels_of(data.validation_y, name, "validation labels"),
        )
    for which, samples, labels in _parts(found):
        if len(samples) != len(labels):
            raise DataError(f'data set "{name}": {len(samples)} {which} samples and {len(labels)} labels')
    if found.weights is not None and np.shape(found.weights) != (len(found.y),):
        problem = f"weights of shape {np.shape(found.weights)}"
        raise DataError(f'data set "{name}": {problem} (accepted: one for each of {len(found.y)} samples)')
    for which, samples, _ in _parts(found)[1:]:
        _check_finite(samples, name, which)
    return found


def _parts(data: Data) -> list[tuple[str, Float32, LabelArray]]:
    """Return the name, the samples and the labels of each part."""
    parts = [("training", data.x, data.y), ("test", data.test_x, data.test_y)]
    if data.validation_x is not None and data.validation_y is not None:
        parts.append(("validation", data.validation_x, data.validation_y))
    return parts


def _check_finite(samples: Float32, name: str, which: str) -> None:
    """Raise DataError if samples hold NaN or Inf."""
    if not np.isfinite(samples).all():
        first = int(np.flatnonzero(~np.isfinite(samples).reshape(len(samples), -1).all(axis=1))[0])
        raise DataError(f'data set "{name}": {which} samples: NaN or Inf in sample {first} (accepted: finite numbers)')


def _samples(value: Any, name: str, what: str) -> Float32:
    if isinstance(value, np.ndarray) and value.dtype == np.float32:
        return value
    numbers = _numbers(value, name, what)
    return np.ascontiguousarray(numbers, np.float32)


def _labels(value: Any, name: str, what: str, classes: int, ignored: int | None) -> Int64:
    """Return labels as int64. Raises DataError if one is no whole number from 0 up to `classes`, and not `ignored`."""
    numbers = _numbers(value, name, what)
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        raise DataError(f'data set "{name}": {what}: NaN or Inf (accepted: {_ACCEPTED})')
    labels: Int64 = numbers.astype(np.int64, copy=False)
    if not np.array_equal(labels, numbers):
        raise DataError(f'data set "{name}": {what}: not whole numbers (accepted: {_ACCEPTED})')
    known = labels if ignored is None else labels[labels != ignored]
    if labels.ndim == 1 and known.size and not 0 <= known.min() <= known.max() < classes:
        found = f"{known.min()} to {known.max()}"
        raise DataError(f'data set "{name}": {what}: found {found} (accepted: 0 to {classes - 1})')
    return labels


def _values(value: Any, name: str, what: str) -> NDArray[Any]:
    """Return labels that may be any finite numbers: whole ones as int64, others as float32."""
    numbers = _numbers(value, name, what)
    if numbers.dtype.kind != "f":
        return numbers.astype(np.int64, copy=False)
    if not np.isfinite(numbers).all():
        raise DataError(f'data set "{name}": {what}: NaN or Inf (accepted: finite numbers)')
    return numbers.astype(np.float32, copy=False)


def _numbers(value: Any, name: str, what: str) -> NDArray[Any]:
    """Return an array of numbers. Raises DataError if `value` is none."""
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f'data set "{name}": {what}: {error} (accepted: {_ACCEPTED})') from None
    if array.dtype.kind not in "biuf":
        raise DataError(f'data set "{name}": {what}: found {array.dtype} (accepted: {_ACCEPTED})')
    return array
