"""What kind of labels data have, and the labels as training needs them.

Integers are classes, floats are values (regression). Two axes of integers are the next tokens of a sequence; where
all are 0 or 1 they are the answers to several questions (multi-label), unless the inputs are tokens of that shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from fedactors.data.base import LabelKind
from fedactors.data.user.arrays import AnyArray, finite
from fedactors.errors import DataError

Target = Literal["auto", "class", "value", "sequence", "multi-label"]
Parts = tuple[AnyArray, ...]  # labels for training, for test and, if there are some, for validation

_PARTS = ("train", "test", "validation")


class ReadLabels(NamedTuple):
    """Labels of all samples."""

    kind: LabelKind
    parts: Parts  # of training, test and perhaps validation: int64; float32 for values, several answers
    classes: int  # how many labels, or answers; 1 for values
    names: tuple[str, ...] = ()  # of the labels, where they are not numbers from 0


@dataclass(frozen=True)
class LabelRules:
    """What a scenario says of labels."""

    target: Target = "auto"
    remap: bool = False
    classes: int | None = None
    ignored: int | None = None  # a label that does not count in the loss; those below 0 are labels only so
    tokens: tuple[int, ...] | None = None  # shape of the inputs where these are identifiers
    where: str = ""


def labels_of(given: Sequence[AnyArray], rules: LabelRules) -> ReadLabels:
    """Return labels as training needs them; `given` are those for training, for test and perhaps for validation.

    Raises DataError, one message, if they are of no kind.
    """
    parts = tuple(map(_column, given))
    for which, part in _named(parts)[1:]:
        _check_alike(parts[0], part, which, rules)
    kind = _kind(parts, rules)
    _check_axes(kind, parts[0], rules)
    if kind == "value":
        values = (finite(part, f"{rules.where}: {which}", "label") for which, part in _named(parts))
        return ReadLabels(kind, tuple(values), 1)
    if parts[0].dtype.kind == "U":
        return _remapped(parts)
    whole = tuple(_whole(part, which, rules) for which, part in _named(parts))
    if kind == "multi-label":
        return _answers(whole, rules)
    if kind == "class" and rules.remap:
        return _renumbered(whole, rules)
    return ReadLabels(kind, whole, _counted(kind, whole, rules))


def _named(parts: Parts) -> list[tuple[str, AnyArray]]:
    return list(zip(_PARTS, parts, strict=False))


def _column(labels: AnyArray) -> AnyArray:
    """Return `(n,)` in place of `(n, 1)`."""
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _check_alike(train: AnyArray, part: AnyArray, which: str, rules: LabelRules) -> None:
    """Raise DataError if labels of another part have another shape than those for training, or texts meet numbers."""
    if train.ndim > 2 and train.shape[1:] == part.shape[1:]:
        shape, places = train.shape[1:], train[0].size
        raise DataError(
            f"{rules.where}: labels of the shape {shape} for each sample (accepted: a number, or a list of them; masks"
            f" as lists of {places:,}, with target: sequence and a model that answers ({places:,}, classes))"
        )
    if train.shape[1:] != part.shape[1:]:
        raise DataError(
            f"{rules.where}: labels of training samples have the shape {train.shape[1:]}, of {which} samples"
            f" {part.shape[1:]} (accepted: one shape; a number, or a list of them)"
        )
    texts, other_texts = (labels.dtype.kind == "U" for labels in (train, part))
    # labels for testing may all look like numbers where others are texts
    known = texts and np.isin(part.astype(str), train).all()
    if texts != other_texts and not known:
        kinds = [_texts_or_numbers(labels) for labels in (train, part)]
        raise DataError(
            f"{rules.where}: labels of training samples are {kinds[0]}, of {which} samples {kinds[1]}"
            " (accepted: both of one kind)"
        )


def _texts_or_numbers(labels: AnyArray) -> str:
    return f'texts such as "{str(labels.flat[0])[:60]}"' if labels.dtype.kind == "U" else "numbers"


def _kind(parts: Parts, rules: LabelRules) -> LabelKind:
    if rules.target != "auto":
        return rules.target
    train = parts[0]
    floats = any(part.dtype.kind == "f" for part in parts)
    if train.ndim == 1:
        return "value" if floats else "class"
    yes_or_no = train.dtype.kind != "U" and all(np.isin(part, (0, 1)).all() for part in parts)
    if yes_or_no and rules.tokens != train.shape[1:]:
        return "multi-label"
    return "value" if floats else "sequence"


def _check_axes(kind: LabelKind, train: AnyArray, rules: LabelRules) -> None:
    """Raise DataError if labels of a kind cannot have such a shape, or be texts."""
    several = kind in ("sequence", "multi-label")
    if kind != "value" and several != (train.ndim == 2):
        wanted = "a list of numbers for each sample" if several else "one label for each sample"
        kinds = ", ".join(name for name in get_args(LabelKind) if name != kind)
        raise DataError(
            f"{rules.where}: labels of the kind {kind} with shape {train.shape[1:]}"
            f" (accepted: {wanted}; or another target: {kinds})"
        )
    if train.dtype.kind == "U" and (kind != "class" or train.ndim != 1):
        raise DataError(f'{rules.where}: labels of the kind {kind}: found "{train.flat[0]}" (accepted: numbers)')


def _whole(labels: AnyArray, which: str, rules: LabelRules) -> AnyArray:
    """Return labels as int64. Raises DataError if one is not a whole number."""
    if labels.dtype.kind == "f":
        odd = ~np.isfinite(labels) | (labels != np.floor(labels))
        if odd.any():
            at = int(odd.reshape(len(odd), -1).any(1).argmax())
            found = labels[at][odd[at]].flat[0]
            raise DataError(
                f"{rules.where}: {which} sample {at}, label: found {found} (accepted: whole numbers, or target: value)"
            )
    return labels.astype(np.int64)


def _answers(parts: Parts, rules: LabelRules) -> ReadLabels:
    for which, part in _named(parts):
        bad = ~np.isin(part, (0, 1))
        if bad.any():
            at = int(bad.any(1).argmax())
            raise DataError(
                f"{rules.where}: {which} sample {at}, label: found {part[at][bad[at]][0]} (accepted: 0 or 1 for each)"
            )
    return ReadLabels("multi-label", tuple(part.astype(np.float32) for part in parts), parts[0].shape[1])


def _remapped(parts: Parts) -> ReadLabels:
    """Return labels numbered from 0 in their own order."""
    names, codes = np.unique(np.concatenate(parts), return_inverse=True)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    numbered = np.split(codes.astype(np.int64), ends)
    return ReadLabels("class", tuple(numbered), len(names), tuple(map(str, names.tolist())))


def _renumbered(parts: Parts, rules: LabelRules) -> ReadLabels:
    """Return whole numbers numbered from 0; what does not count stays as it is.

    Raises DataError if a number that does not count would become another.
    """
    there = [_counting(part, rules) for part in parts]
    found = _remapped(tuple(part[counts] for part, counts in zip(parts, there, strict=True)))
    moved = {name: number for number, name in enumerate(found.names) if name != str(number)}
    if (number := moved.get(str(rules.ignored))) is not None:
        raise DataError(
            f"{rules.where}: labels: {rules.ignored}, which does not count, would be numbered {number} (accepted: a"
            " negative number for what does not count, or labels: from 0)"
        )
    renewed = tuple(part.copy() for part in parts)
    for part, counts, numbers in zip(renewed, there, found.parts, strict=True):
        part[counts] = numbers
    return found._replace(parts=renewed)


def _counting(labels: AnyArray, rules: LabelRules) -> AnyArray:
    """Return which labels are no negative number that stands for none."""
    nothing = rules.ignored is not None and rules.ignored < 0
    return labels != rules.ignored if nothing else np.ones(labels.shape, bool)


def _counted(kind: LabelKind, parts: Parts, rules: LabelRules) -> int:
    """Return how many labels there are. Raises DataError if they do not count from 0, or have gaps."""
    found = _distinct(parts, rules)
    low, high = int(found[0]), int(found[-1])
    ways = " or labels: remap, which numbers them anew" if kind == "class" else ""
    if low < 0:
        raise DataError(f"{rules.where}: labels: found {low} (accepted: from 0;{ways or ' no negative ones'})")
    if rules.classes is not None and high >= rules.classes:
        raise DataError(f"{rules.where}: labels: found {high} (accepted: 0 to {rules.classes - 1}, as classes says)")
    if rules.classes is None and kind == "class":
        _refuse_gaps(found, ways, rules)
    return rules.classes or high + 1


def _distinct(parts: Parts, rules: LabelRules) -> AnyArray:
    """Return the labels that are no negative number for none, ascending. Raises DataError if there is no other."""
    found = np.unique(np.concatenate([part[_counting(part, rules)] for part in parts]))
    if not len(found):
        raise DataError(f"{rules.where}: labels: all are {rules.ignored}, which does not count (accepted: others too)")
    return found


def _refuse_gaps(found: AnyArray, ways: str, rules: LabelRules) -> None:
    """Raise DataError if labels `found`, ascending from 0 or more, are not all up to the last one."""
    low, high = int(found[0]), int(found[-1])
    if len(found) != high + 1:
        lacking = int(np.setdiff1d(np.arange(high + 1), found)[0]) if high < 10**7 else low + 1
        raise DataError(
            f"{rules.where}: labels: found {low} to {high} but no {lacking} (accepted: from 0 without gaps,"
            f"{ways}; or classes: {high + 1}, if some have no sample)"
        )
