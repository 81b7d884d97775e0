"""What kind of labels data have, and the labels as training needs them.

Integers are classes, floats are values (regression). Two axes of integers are the next tokens of a sequence; where
all are 0 or 1 they are the answers to several questions (multi-label), unless the inputs are tokens of that shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from fedactors.data.base import LabelKind
from fedactors.data.user.arrays import AnyArray, finite
from fedactors.errors import DataError

Target = Literal["auto", "class", "value", "sequence", "multi-label"]


class ReadLabels(NamedTuple):
    """Labels of all samples."""

    kind: LabelKind
    y: AnyArray  # int64, or float32 for values and several answers
    test_y: AnyArray
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


def labels_of(train: AnyArray, test: AnyArray, rules: LabelRules) -> ReadLabels:
    """Return labels as training needs them. Raises DataError, one message, if they are of no kind."""
    train, test = _column(train), _column(test)
    _check_alike(train, test, rules)
    kind = _kind(train, test, rules)
    _check_axes(kind, train, rules)
    if kind == "value":
        y, test_y = (finite(part, f"{rules.where}: {which}", "label") for which, part in _parts(train, test))
        return ReadLabels(kind, y, test_y, 1)
    if train.dtype.kind == "U":
        return _remapped(train, test)
    whole, test_whole = (_whole(part, which, rules) for which, part in _parts(train, test))
    if kind == "multi-label":
        return _answers(whole, test_whole, rules)
    if kind == "class" and rules.remap:
        return _renumbered(whole, test_whole, rules)
    return ReadLabels(kind, whole, test_whole, _counted(kind, whole, test_whole, rules))


def _parts(train: AnyArray, test: AnyArray) -> tuple[tuple[str, AnyArray], tuple[str, AnyArray]]:
    return ("train", train), ("test", test)


def _column(labels: AnyArray) -> AnyArray:
    """Return `(n,)` in place of `(n, 1)`."""
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _check_alike(train: AnyArray, test: AnyArray, rules: LabelRules) -> None:
    """Raise DataError if labels for testing have another shape than those for training, or texts meet numbers."""
    if train.shape[1:] != test.shape[1:] or train.ndim > 2:
        raise DataError(
            f"{rules.where}: labels of training samples have the shape {train.shape[1:]}, of test samples"
            f" {test.shape[1:]} (accepted: one shape; a number, or a list of them)"
        )
    texts, test_texts = (part.dtype.kind == "U" for part in (train, test))
    # labels for testing may all look like numbers where others are texts
    known = texts and np.isin(test.astype(str), train).all()
    if texts != test_texts and not known:
        kinds = [_texts_or_numbers(part) for part in (train, test)]
        raise DataError(
            f"{rules.where}: labels of training samples are {kinds[0]}, of test samples {kinds[1]}"
            " (accepted: both of one kind)"
        )


def _texts_or_numbers(labels: AnyArray) -> str:
    return f'texts such as "{str(labels.flat[0])[:60]}"' if labels.dtype.kind == "U" else "numbers"


def _kind(train: AnyArray, test: AnyArray, rules: LabelRules) -> LabelKind:
    if rules.target != "auto":
        return rules.target
    floats = "f" in (train.dtype.kind, test.dtype.kind)
    if train.ndim == 1:
        return "value" if floats else "class"
    yes_or_no = train.dtype.kind != "U" and all(np.isin(part, (0, 1)).all() for part in (train, test))
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


def _answers(train: AnyArray, test: AnyArray, rules: LabelRules) -> ReadLabels:
    for which, part in _parts(train, test):
        bad = ~np.isin(part, (0, 1))
        if bad.any():
            at = int(bad.any(1).argmax())
            raise DataError(
                f"{rules.where}: {which} sample {at}, label: found {part[at][bad[at]][0]} (accepted: 0 or 1 for each)"
            )
    return ReadLabels("multi-label", train.astype(np.float32), test.astype(np.float32), train.shape[1])


def _remapped(train: AnyArray, test: AnyArray) -> ReadLabels:
    """Return labels numbered from 0 in their own order."""
    names, codes = np.unique(np.concatenate([train, test]), return_inverse=True)
    codes = codes.astype(np.int64)
    return ReadLabels("class", codes[: len(train)], codes[len(train) :], len(names), tuple(map(str, names.tolist())))


def _renumbered(train: AnyArray, test: AnyArray, rules: LabelRules) -> ReadLabels:
    """Return whole numbers numbered from 0; what does not count stays as it is.

    Raises DataError if a number that does not count would become another.
    """
    there, test_there = (_counting(part, rules) for part in (train, test))
    found = _remapped(train[there], test[test_there])
    moved = {name: number for number, name in enumerate(found.names) if name != str(number)}
    if (number := moved.get(str(rules.ignored))) is not None:
        raise DataError(
            f"{rules.where}: labels: {rules.ignored}, which does not count, would be numbered {number} (accepted: a"
            " negative number for what does not count, or labels: from 0)"
        )
    y, test_y = train.copy(), test.copy()
    y[there], test_y[test_there] = found.y, found.test_y
    return found._replace(y=y, test_y=test_y)


def _counting(labels: AnyArray, rules: LabelRules) -> AnyArray:
    """Return which labels are no negative number that stands for none."""
    nothing = rules.ignored is not None and rules.ignored < 0
    return labels != rules.ignored if nothing else np.ones(labels.shape, bool)


def _counted(kind: LabelKind, train: AnyArray, test: AnyArray, rules: LabelRules) -> int:
    """Return how many labels there are. Raises DataError if they do not count from 0, or have gaps."""
    found = _distinct(train, test, rules)
    low, high = int(found[0]), int(found[-1])
    ways = " or labels: remap, which numbers them anew" if kind == "class" else ""
    if low < 0:
        raise DataError(f"{rules.where}: labels: found {low} (accepted: from 0;{ways or ' no negative ones'})")
    if rules.classes is not None and high >= rules.classes:
        raise DataError(f"{rules.where}: labels: found {high} (accepted: 0 to {rules.classes - 1}, as classes says)")
    if rules.classes is None and kind == "class":
        _refuse_gaps(found, ways, rules)
    return rules.classes or high + 1


def _distinct(train: AnyArray, test: AnyArray, rules: LabelRules) -> AnyArray:
    """Return the labels that are no negative number for none, ascending. Raises DataError if there is no other."""
    found = np.unique(np.concatenate([part[_counting(part, rules)] for part in (train, test)]))
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
