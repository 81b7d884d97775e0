"""The parts of data of the user: training, test and, where there is one, validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fedactors.data.user.raw_part import RawPart
from fedactors.data.user.samples import PART
from fedactors.errors import DataError

_KEYS = ("train", "test", "validation")


class RawParts(NamedTuple):
    """The samples of all parts as they were read, nothing converted yet."""

    train: RawPart
    test: RawPart
    validation: RawPart | None = None
    tests_by_seed: bool = False  # whether the seed draws which samples are for testing

    @property
    def there(self) -> dict[str, RawPart]:
        """The parts that there are, by name."""
        found = {"train": self.train, "test": self.test}
        return found if self.validation is None else found | {"validation": self.validation}


def parts_of(found: Any, where: str) -> dict[str, Any]:
    """Return the parts that a function of the user returned, by name: train, test and perhaps validation.

    Raises DataError if these are not two or three.
    """
    if isinstance(found, Mapping):
        if {"train", "test"} <= set(found) <= set(_KEYS):
            return {key: found[key] for key in _KEYS if key in found}
        keys = ", ".join(map(str, found))
        raise DataError(
            f"{where}: returned a dictionary with {keys or 'nothing'} (accepted: the keys train and test, or train,"
            " test and validation)"
        )
    if isinstance(found, (tuple, list)):
        if len(found) in (2, len(_KEYS)):
            return dict(zip(_KEYS, found, strict=False))
        raise DataError(
            f"{where}: returned {len(found)} things (accepted: two, training data and test data, or a third,"
            " validation data)"
        )
    raise DataError(f"{where}: returned {type(found).__name__} (accepted: a pair train, test; each {PART})")
