"""Reads what a function of the user returns: map-style data sets, or arrays, for training and for test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fedactors.data.user.arrays import AnyArray, array_of, columns_of, is_frame, is_text, stacked, word
from fedactors.data.user.raw_part import RawPart
from fedactors.data.user.repeated_reading import COMPARED, compare_again
from fedactors.errors import DataError, suggestion

LABELS = ("label", "labels", "y", "target")  # keys that name the label if a scenario does not say
PART = "a data set of (input, label), arrays (inputs, labels), or a dictionary or data frame of columns with a label"


@dataclass(frozen=True)
class Keys:
    """Which keys of a sample, or columns of a table, are what."""

    label: str | None = None
    weight: str | None = None
    inputs: tuple[str, ...] = ()
    owner: str | None = None
    client: str | None = None  # that says whose a sample is, and is no input even where nobody asks for it
    owner_of: Callable[[Any], Any] | None = field(default=None, compare=False)  # of a whole sample

    @property
    def apart(self) -> set[str]:
        """Keys that are no inputs."""
        return {key for key in (self.weight, self.owner, self.client) if key}


class _Sample(NamedTuple):
    """A sample taken apart."""

    inputs: dict[str, Any]  # by key; by number for inputs by position
    label: Any
    apart: dict[str, Any]  # what is neither


def read_part(part: Any, where: str, keys: Keys, compared: int = COMPARED) -> RawPart:
    """Return the samples of one part; `compared` samples of a data set with items are read twice.

    Raises DataError, which begins with `where`, if the part has none of the forms, or a sample differs from the first
    time that it was read.
    """
    if isinstance(part, tuple):
        return _of_arrays(part, where, keys)
    if is_frame(part):
        return _of_columns(columns_of(part), where, keys)
    if isinstance(part, Mapping):
        return _of_columns(part, where, keys)
    if not hasattr(part, "__getitem__") or not hasattr(part, "__len__"):
        raise DataError(f"{where}: found {type(part).__name__}, which has no length or no items (accepted: {PART})")
    try:
        count = len(part)
    except TypeError:
        raise DataError(f"{where}: {type(part).__name__} does not say its length (accepted: {PART})") from None
    if not count:
        raise DataError(f"{where}: has no samples (accepted: at least one)")
    found = _of_samples(part, range(count), where, keys)
    compare_again(found, lambda some: _of_samples(part, some, where, keys), compared, where)
    return found


def _of_samples(part: Any, numbers: Sequence[int], where: str, keys: Keys) -> RawPart:
    """Return the samples of these numbers. Raises DataError if they cannot be used."""
    inputs = dict[str, list[Any]]()
    apart = dict[str, list[Any]]()
    labels = list[Any]()
    owners = list[Any]()
    for number in numbers:
        sample = part[number]
        place = f"{where} sample {number}"
        one = _taken_apart(sample, place, keys)
        if inputs and list(one.inputs) != list(inputs):
            raise DataError(
                f"{place}: has the inputs {_listed(one.inputs)}, sample 0 has {_listed(inputs)} (accepted: the same)"
            )
        _append(inputs, one.inputs)
        _append(apart, one.apart)
        labels.append(one.label)
        if keys.owner_of:
            owners.append(keys.owner_of(sample))
    read = tuple((_name(key), stacked(column, where, _said(key))) for key, column in inputs.items())
    owner = apart.get(keys.owner or "") if not keys.owner_of else owners
    weights = stacked(apart[keys.weight], where, "weight") if keys.weight else None
    return RawPart(read, stacked(labels, where, "label"), weights, owner_column(owner, where))


def _append(columns: dict[str, list[Any]], values: Mapping[str, Any]) -> None:
    """Append the values of a sample to the columns of their names."""
    for name, value in values.items():
        columns.setdefault(name, []).append(value)


def _taken_apart(sample: Any, where: str, keys: Keys) -> _Sample:
    if isinstance(sample, Mapping):
        return _with_label(sample, where, keys)
    if not isinstance(sample, (tuple, list)) or len(sample) < 2:
        raise DataError(
            f"{where}: found {type(sample).__name__} (accepted: (input, label), or a dictionary with a label)"
        )
    *given, label = sample
    if len(given) == 1 and isinstance(given[0], Mapping):
        return _by_key(dict(given[0]), label, where, keys)
    if len(given) == 1 and _is_structure(given[0]):
        given = list(given[0])
    return _by_position(given, label, where, keys)


def _is_structure(value: Any) -> bool:
    """Whether an input consists of several: a tuple, or a list of anything but numbers."""
    return isinstance(value, tuple) or (
        isinstance(value, list) and any(hasattr(one, "shape") and one.shape for one in value)
    )


def _by_position(given: Sequence[Any], label: Any, where: str, keys: Keys) -> _Sample:
    """Return a sample whose inputs have no names. Raises DataError if some are wanted by name."""
    if lacking := keys.apart or set(keys.inputs):
        raise DataError(
            f'{where}: has no key "{min(lacking)}": it is a tuple (accepted: dictionaries; for clients also a function'
            ' "data.py:client_of" of a sample)'
        )
    return _Sample({str(number): value for number, value in enumerate(given)}, label, {})


def _with_label(found: Mapping[Any, Any], where: str, keys: Keys) -> _Sample:
    """Return a dictionary, its label among the values, taken apart: that of a sample, or one of whole columns."""
    key = label_key(found, where, keys)
    return _by_key({name: value for name, value in found.items() if name != key}, found[key], where, keys)


def _by_key(values: dict[str, Any], label: Any, where: str, keys: Keys) -> _Sample:
    wanted = list(keys.inputs) or [name for name in values if name not in keys.apart]
    for name in (*wanted, *keys.apart):
        if name not in values:
            raise DataError(f'{where}: has no key "{name}"{suggestion(name, map(str, values))}')
    if not wanted:
        raise DataError(f"{where}: has no inputs besides its label (accepted: at least one)")
    if not keys.inputs:
        _refuse_text(values, wanted, where)
    return _Sample(
        {str(name): values[name] for name in wanted}, label, {name: values[name] for name in sorted(keys.apart)}
    )


def _refuse_text(values: Mapping[str, Any], inputs: Sequence[str], where: str) -> None:
    """Raise DataError if one of the `inputs`, which the user has not named, holds text."""
    for name in inputs:
        if is_text(values[name]):
            raise DataError(
                f'{where}: the key "{name}" holds text (accepted: numbers; or say which keys are inputs: inputs: [...])'
            )


def label_key(sample: Mapping[Any, Any], where: str, keys: Keys) -> str:
    """Return the key of the label. Raises DataError if there is none."""
    if keys.label is not None and keys.label not in sample:
        raise DataError(f'{where}: has no key "{keys.label}"{suggestion(keys.label, map(str, sample))}')
    found = keys.label or next((name for name in LABELS if name in sample), None)
    if found is None:
        listed = ", ".join(map(str, sample))
        raise DataError(f"{where}: no label among the keys {listed} (accepted: {', '.join(LABELS)}; or label: KEY)")
    return found


def _of_arrays(part: tuple[Any, ...], where: str, keys: Keys) -> RawPart:
    if len(part) < 2:
        raise DataError(f"{where}: found {len(part)} arrays (accepted: (inputs, labels))")
    *given, labels = part
    if len(given) == 1 and isinstance(given[0], Mapping):
        return _of_columns({**given[0], "label": labels}, where, replace_label(keys))
    if len(given) == 1 and isinstance(given[0], tuple):
        given = list(given[0])
    if lacking := keys.apart or set(keys.inputs):
        raise DataError(
            f'{where}: has no column "{min(lacking)}": it is arrays without names (accepted: a dictionary of them)'
        )
    inputs = {str(number): array_of(value, f"{where} inputs") for number, value in enumerate(given)}
    of_labels = array_of(labels, f"{where} labels")
    return _joined(inputs, of_labels, {}, lambda: zip(*inputs.values(), of_labels, strict=True), where, keys)


def replace_label(keys: Keys) -> Keys:
    """Return keys whose label is called "label"."""
    return replace(keys, label="label")


def _of_columns(part: Mapping[Any, Any], where: str, keys: Keys) -> RawPart:
    one = _with_label(part, where, keys)
    inputs = {name: array_of(value, f'{where} column "{name}"') for name, value in one.inputs.items()}
    labels = array_of(one.label, f"{where} labels")
    if keys.owner_of:
        for name, column in part.items():
            _check_length(f'column "{name}"', column, labels, where)
    return _joined(inputs, labels, one.apart, lambda: _rows(part), where, keys)


def _rows(columns: Mapping[Any, Any]) -> Iterator[dict[Any, Any]]:
    """Yield the samples of whole columns."""
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def _joined(
    inputs: dict[str, AnyArray],
    labels: AnyArray,
    apart: dict[str, Any],
    samples: Callable[[], Iterable[Any]],
    where: str,
    keys: Keys,
) -> RawPart:
    """Return a part of whole columns; `samples` are its rows, as a function of the user has them.

    Raises DataError if their lengths differ, or there are no samples.
    """
    for name, column in (*inputs.items(), *apart.items()):
        _check_length(_said(name), column, labels, where)
    if not len(labels):
        raise DataError(f"{where}: has no samples (accepted: at least one)")
    owners = apart.get(keys.owner or "")
    if keys.owner_of:
        owners = [keys.owner_of(sample) for sample in samples()]
    weights = array_of(apart[keys.weight], f"{where} weights") if keys.weight else None
    named = tuple((_name(name), column) for name, column in inputs.items())
    return RawPart(named, labels, weights, owner_column(owners, where))


def _check_length(said: str, column: Any, labels: AnyArray, where: str) -> None:
    """Raise DataError, in which the column is called `said`, if it has not as many values as there are labels."""
    length = len(column) if np.ndim(column) else -1
    if labels.ndim < 1 or length != len(labels):
        found = f"{length:,} samples" if length >= 0 else "a single number"
        wanted = f"{len(labels):,} labels" if labels.ndim else "a single label"
        raise DataError(f"{where}: {said}: {found} but {wanted} (accepted: as many of both)")


def owner_column(owners: Sequence[Any] | AnyArray | None, where: str) -> AnyArray | None:
    """Return whose each sample is, as int64 or else as texts: 2 and 2.0 are one client, and so are text and its bytes.

    Raises DataError if a sample belongs to nobody.
    """
    if owners is None:
        return None
    plain = [owner.item() if hasattr(owner, "item") else owner for owner in owners]
    for number, owner in enumerate(plain):
        if _is_nobody(owner):
            raise DataError(
                f"{where} sample {number}: belongs to no client: found {owner!r} (accepted: a client's key)"
            )
    whole = [int(owner) if isinstance(owner, float) and owner.is_integer() else owner for owner in plain]
    if all(map(_is_int64, whole)):
        return np.array(whole, dtype=np.int64)
    return np.array(list(map(word, plain)))


def _is_int64(owner: Any) -> bool:
    return isinstance(owner, int) and owner.bit_length() < 64


def _is_nobody(owner: Any) -> bool:
    """Whether a cell says no client: None, an empty text or NaN."""
    return bool(owner is None or owner == "" or owner != owner)


def _name(key: str) -> str:
    """Return the name of an input; inputs by position have none."""
    return "" if key.isdigit() else key


def _said(key: str) -> str:
    return f'input "{key}"' if _name(key) else f"input {key}" if key != "0" else "input"


def _listed(inputs: Mapping[str, Any]) -> str:
    return ", ".join(inputs)
