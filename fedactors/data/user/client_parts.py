"""Data that a function of the user returns by client: a dictionary of parts, or a list of data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedactors.data.user.arrays import AnyArray
from fedactors.data.user.raw_part import RawPart
from fedactors.data.user.repeated_reading import COMPARED
from fedactors.data.user.samples import LABELS, Keys, owner_column, read_part
from fedactors.errors import DataError


def read_clients(part: Any, where: str, keys: Keys) -> RawPart:
    """Return the samples of one part, with whose they are if it has one part for each client.

    Raises DataError, which begins with `where`, if it has none of the forms.
    """
    clients = _by_client(part, keys)
    if not clients:
        _refuse_list(part, where)
        return read_part(part, where, keys)
    if keys.owner or keys.owner_of:
        raise DataError(
            f"{where}: comes by client already (accepted: partition natural without by, data without client)"
        )
    shares = np.diff(np.arange(len(clients) + 1) * COMPARED // len(clients)).tolist()
    parts = {
        name: read_part(one, f"{where}: client {name}", keys, compared)
        for (name, one), compared in zip(clients.items(), shares, strict=True)
    }
    return _joined(parts, where)


def _by_client(part: Any, keys: Keys) -> Mapping[Any, Any]:
    """Return the parts by client if `part` is such a dictionary, or a list of data sets; nothing if it is neither."""
    if isinstance(part, Mapping):
        has_label = any(name in part for name in (keys.label, *LABELS))
        return {} if has_label or not all(map(_is_part, part.values())) else part
    if isinstance(part, list) and part and all(map(_is_data_set, part)):
        return dict(enumerate(part))
    return {}


def _refuse_list(part: Any, where: str) -> None:
    """Raise DataError if a list has pairs of as many inputs as labels, and not as many in each: no samples are so."""
    if not isinstance(part, list) or not all(map(_is_pair, part)):
        return
    if len({len(labels) for _, labels in part}) > 1:
        raise DataError(
            f"{where}: is a list of {len(part)} pairs of arrays, as if each were a client's"
            " (accepted: a dictionary {client: (inputs, labels)}, such as dict(enumerate(parts)))"
        )


def _is_pair(value: Any) -> bool:
    """Whether a value is an array of inputs and one of as many labels."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    x, y = value
    return _has_rows(x) and _has_rows(y) and len(x) == len(y)


def _has_rows(value: Any) -> bool:
    return hasattr(value, "dtype") and np.ndim(value) > 0


def _is_part(value: Any) -> bool:
    """Whether a value can be all samples of a client, and no column."""
    return isinstance(value, (tuple, Mapping)) or _is_data_set(value)


def _is_data_set(value: Any) -> bool:
    """Whether a value is a data set with items: no array or tensor, and nothing of Python's own."""
    own = isinstance(value, (list, tuple, Mapping, str, bytes)) or hasattr(value, "dtype")
    return not own and hasattr(value, "__getitem__") and hasattr(value, "__len__")


def _joined(parts: Mapping[Any, RawPart], where: str) -> RawPart:
    """Return the samples of all clients as one part. Raises DataError if they are not alike."""
    first_name, first = next(iter(parts.items()))
    for name, part in parts.items():
        if _form(part) != _form(first):
            raise DataError(
                f"{where}: client {name} has {_said(part)}, client {first_name} has {_said(first)} (accepted: the same)"
            )
    every = list(parts.values())
    inputs = tuple(_input(every, number) for number in range(len(first.inputs)))
    weights = [part.weights for part in every if part.weights is not None]
    owners = [name for name, part in parts.items() for _ in range(len(part))]
    return RawPart(
        inputs,
        np.concatenate([part.labels for part in every]),
        np.concatenate(weights) if weights else None,
        owner_column(owners, where),
    )


def _input(parts: Sequence[RawPart], number: int) -> tuple[str, AnyArray]:
    """Return the name of an input, and its values at all clients."""
    return parts[0].inputs[number][0], np.concatenate([part.inputs[number][1] for part in parts])


def _form(part: RawPart) -> tuple[Any, ...]:
    """Return what has to be the same at all clients."""
    return [(name, array.shape[1:], array.dtype.kind == "U") for name, array in part.inputs], part.labels.shape[1:]


def _said(part: RawPart) -> str:
    inputs = ", ".join(f"{name or 'input'} of shape {array.shape[1:]}" for name, array in part.inputs)
    return f"{inputs}, label of shape {part.labels.shape[1:]}"
