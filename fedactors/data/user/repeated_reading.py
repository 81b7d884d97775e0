"""Compares samples of a data set with items with the same ones, read a second time.

A data set is read once, before the run. If it draws random numbers when a sample is read, as augmentation does in
`__getitem__`, one draw would be kept for the whole run, and another run with the same seed would keep another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fedactors.data.user.arrays import AnyArray
from fedactors.data.user.raw_part import RawPart
from fedactors.errors import DataError

COMPARED = 64  # samples of a part that are read twice
_ACCEPTED = (
    "accepted: a data set whose items are the same at each reading; random transforms go into task.transform with"
    " variants, or into the module's forward, if self.training"
)


def spread(count: int, wanted: int) -> list[int]:
    """Return at most `wanted` numbers below `count`, ascending, at even distances, with the first and the last."""
    if wanted < 2:
        return [count // 2][:wanted]
    return sorted({round(place * (count - 1) / (wanted - 1)) for place in range(wanted)})


def compare_again(part: RawPart, read: Callable[[Sequence[int]], RawPart], wanted: int, where: str) -> None:
    """Read `wanted` samples again. Raises DataError, which begins with `where`, if one is not what it was."""
    if not (numbers := spread(len(part), wanted)):
        return
    again = read(numbers)
    for name, first, second in _columns(part, again):
        for number, value in zip(numbers, second, strict=True):
            if not _same(first[number], value):
                raise DataError(
                    f"{where} sample {number}: {name} differs when the sample is read again, so that the same"
                    f" seed would not give the same run ({_ACCEPTED})"
                )


def _columns(part: RawPart, again: RawPart) -> list[tuple[str, AnyArray, AnyArray]]:
    """Return name, all values and the values of the second reading of each column that both have."""
    pairs = [
        (f'input "{name}"' if name else "its input", first, second)
        for (name, first), (_, second) in zip(part.inputs, again.inputs, strict=True)
    ]
    pairs.append(("its label", part.labels, again.labels))
    for name, first, second in (
        ("its weight", part.weights, again.weights),
        ("its client", part.owners, again.owners),
    ):
        if first is not None and second is not None:
            pairs.append((name, first, second))
    return pairs


def _same(first: AnyArray, second: AnyArray) -> bool:
    """Whether two values are the same; those that are no numbers (NaN) are."""
    first, second = np.asarray(first), np.asarray(second)
    if first.dtype.kind == "U" or second.dtype.kind == "U":
        return bool(np.array_equal(first.astype(str), second.astype(str)))
    return np.array_equal(first, second, equal_nan=True)
