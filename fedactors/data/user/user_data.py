"""The base of data sets of the user's own: read once in a process, and kept for whoever asks next.

`info` needs sizes and shapes before training, and only the data tell; so they are read when a scenario is prepared.
What was read is kept under all that it depends on: the options, the text of the user's code, sizes and times of files.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PositiveInt, PrivateAttr
from typing_extensions import Self

from fedactors.data.base import Data, Info
from fedactors.data.user.arrays import Integers
from fedactors.data.user.assembly import Form, LoadedData, assembled
from fedactors.data.user.labels import LabelRules, Target
from fedactors.data.user.parts import RawParts
from fedactors.data.user.samples import Keys
from fedactors.errors import DataError, ScenarioError
from fedactors.options import Options
from fedactors.own_code.user_code import Reference, telling
from fedactors.paths import ScenarioPath

_KEPT = 2  # data sets at a time
_cache: dict[tuple[Any, ...], LoadedData] = {}


class UserData(Options):
    """What all data sets of the user's own may say."""

    name: str
    target: Target = "auto"
    """Kind of the labels: `class`, `value` (regression), `sequence` (next token), `multi-label`; or found: `auto`."""
    labels: Literal["from 0", "remap"] = "from 0"
    """`remap` numbers labels anew, in their order; if not, they must count from 0 without gaps."""
    classes: PositiveInt | None = None
    """How many labels there are, if not all of them have a sample."""
    shape: Annotated[tuple[PositiveInt, ...], Field(strict=False)] | None = None
    """Shape of a sample, such as [1, 28, 28], if it is not the one that it comes in."""
    _by: str | Reference | None = PrivateAttr(default=None)
    _ignored: int | None = PrivateAttr(default=None)

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes and shapes; the data are read. Raises DataError if they cannot be."""
        return self._loaded(seed).info

    def check(self) -> None:
        """Do nothing: `info` reads the data, and raises what is wrong with them."""

    def load(self, seed: int, clients: int) -> Data:
        """Return the data. Raises DataError if something is wrong with them."""
        return self._loaded(seed).data

    def grouped_by(self, by: str | Reference) -> Self:
        """Return the data set whose samples come by client: by a column, a key, or a function of a sample."""
        copied = self.model_copy()
        copied._by = by
        return copied

    def without_label(self, ignored: int) -> Self:
        """Return the data set one of whose labels does not count in the loss."""
        copied = self.model_copy()
        copied._ignored = ignored
        return copied

    def called(self) -> str:
        """Return what to call the data in messages."""
        return self.name

    def _read(self, keys: Keys, seed: int) -> RawParts:
        """Return the samples of all parts. Raises DataError if they cannot be read."""
        raise NotImplementedError

    def _stamps(self) -> tuple[Any, ...]:
        """Return what the data depend on besides the options: see `stamp`."""
        raise NotImplementedError

    def _integers(self) -> Integers:
        return "identifiers"

    def _keys(self) -> Keys:
        """Return which keys are what."""
        return self._keys_of(Keys())

    def _keys_of(self, keys: Keys) -> Keys:
        """Return `keys` with what says whose a sample is: what the partition names, else the client's key."""
        if isinstance(self._by, Reference):
            return replace(keys, owner_of=owner_function(self._by))
        return replace(keys, owner=self._by or keys.client)

    def _loaded(self, seed: int) -> LoadedData:
        by = self._by.module + ":" + self._by.attribute if isinstance(self._by, Reference) else self._by
        key = (type(self), self.model_dump_json(), by, self._ignored, seed, *self._stamps())
        if key not in _cache:
            while len(_cache) >= _KEPT:
                del _cache[next(iter(_cache))]
            _cache[key] = self._checked(seed)
        return _cache[key]

    def _checked(self, seed: int) -> LoadedData:
        """Return the data as they are read now."""
        return self._assembled(seed)

    def _assembled(self, seed: int) -> LoadedData:
        rules = LabelRules(self.target, self.labels == "remap", self.classes, self._ignored)
        form = Form(self.called(), self._integers(), self.shape, rules)
        return assembled(self._read(self._keys(), seed), form, self.name)


def owner_function(reference: Reference) -> Callable[[Any], Any]:
    """Return the user's function that says whose a sample is. Raises DataError if it is none."""
    with telling(reference, "raised", DataError):
        found = reference.load()
    if not callable(found):
        raise ScenarioError(
            f"task.partition.by: {reference} is {type(found).__name__} (accepted: a function of a sample)"
        )

    def owner_of(sample: Any) -> Any:
        with telling(reference, "raised", DataError):
            return found(sample)

    return owner_of


def stamp(path: Path) -> tuple[Any, ...]:
    """Return what a file is identified by: its path, size and time; of a folder those of all files in it."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return (str(path), *((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()))


def stamps(*files: ScenarioPath | None) -> tuple[Any, ...]:
    """Return the stamps of those files that are given and there."""
    return tuple(stamp(file.path) for file in files if file and file.path.exists())


def twice(read: Callable[[], LoadedData], where: str) -> LoadedData:
    """Return what is read; if that takes less than a second, read it again and compare.

    Raises DataError if the second time gives other data: a run could then not be repeated.
    """
    began = time.perf_counter()
    found = read()
    if time.perf_counter() - began < 1 and _digest(found.data) != _digest(read().data):
        raise DataError(
            f"{where}: returned other data when it was called again (accepted: the same ones; seed what it draws)"
        )
    return found


def _digest(data: Data) -> str:
    digest = hashlib.sha256()
    tests = (data.test_x, data.test_y, data.validation_x, data.validation_y)
    for array in (data.x, data.y, *tests, data.weights, data.clients, data.test_clients):
        if array is not None:
            digest.update(f"{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    digest.update(repr(data.client_names).encode())
    return digest.hexdigest()
