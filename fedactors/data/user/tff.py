"""TensorFlow Federated's HDF5 files: `examples/CLIENT/FEATURE`, one array for each client and feature.

    dataset: {name: tff, train: fed_emnist_train.h5, test: fed_emnist_test.h5, label: label, shape: [1, 28, 28]}

Needs the extra `tff` (h5py).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from fedactors.data.user.arrays import AnyArray, Integers, array_of
from fedactors.data.user.parts import RawParts
from fedactors.data.user.raw_part import RawPart
from fedactors.data.user.samples import Keys, label_key
from fedactors.data.user.user_data import UserData, stamps
from fedactors.errors import DataError, suggestion
from fedactors.extras import needed
from fedactors.paths import ScenarioPath

_EXAMPLES = "examples"


class TffData(UserData):
    """Data in the files of TensorFlow Federated, which come by client."""

    name: Literal["tff"] = "tff"
    train: ScenarioPath
    """File of the training data."""
    test: ScenarioPath
    """File of the test data."""
    validation: ScenarioPath | None = None
    """File of the validation data, if there are some."""
    label: str | None = None
    """Feature that is the label."""
    inputs: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Features that are inputs; by default all others."""
    integers: Integers = "identifiers"
    """What integers are in inputs: `identifiers`, or `values`, which become floats."""
    channels_last: bool = False
    """Images lie as (height, width, channels), as CIFAR-100's do there; they are turned."""

    def called(self) -> str:
        """Return the training data's file."""
        return str(self.train)

    def _integers(self) -> Integers:
        return self.integers

    def _stamps(self) -> tuple[Any, ...]:
        return stamps(self.train, self.test, self.validation)

    def _keys(self) -> Keys:
        return self._keys_of(Keys(self.label, None, self.inputs))

    def _read(self, keys: Keys, seed: int) -> RawParts:
        if keys.owner or keys.owner_of:
            raise DataError("task.partition.by: TFF's data come by client (accepted: natural without by)")
        validation = self._part(self.validation, keys) if self.validation else None
        return RawParts(self._part(self.train, keys), self._part(self.test, keys), validation)

    def _part(self, file: ScenarioPath, keys: Keys) -> RawPart:
        library = needed("h5py", "tff")
        if not file.path.is_file():
            raise DataError(f"tff: {file.path}: no such file (a path is relative to the scenario's folder)")
        try:
            with library.File(file.path, "r") as opened:
                if _EXAMPLES not in opened or not len(opened[_EXAMPLES]):
                    raise DataError(f"{file}: has no group {_EXAMPLES} with clients (accepted: a file of TFF)")
                clients = {
                    name: {feature: array[()] for feature, array in group.items()}
                    for name, group in opened[_EXAMPLES].items()
                }
        except (OSError, AttributeError, RuntimeError) as error:
            raise DataError(f"tff: {file.path} cannot be read: {' '.join(str(error).split())[:200]}") from error
        return self._joined(clients, str(file), keys)

    def _joined(self, clients: dict[str, dict[str, Any]], where: str, keys: Keys) -> RawPart:
        first = next(iter(clients.values()))
        label = label_key(first, where, keys)
        wanted = self.inputs or tuple(name for name in first if name != label)
        _check_features(clients, (*wanted, label), where)
        columns = {name: self._column(name, clients, where) for name in (*wanted, label)}
        counts = [len(np.atleast_1d(features[label])) for features in clients.values()]
        for name in wanted:
            if len(columns[name]) != sum(counts):
                raise DataError(f'{where}: "{name}": {len(columns[name]):,} samples but {sum(counts):,} labels')
        named = tuple((name if len(wanted) > 1 else "", columns[name]) for name in wanted)
        return RawPart(named, columns[label], None, np.repeat(list(clients), counts))

    def _column(self, name: str, clients: dict[str, dict[str, Any]], where: str) -> AnyArray:
        parts = [np.atleast_1d(array_of(features[name], f'{where}: "{name}"')) for features in clients.values()]
        if len({part.shape[1:] for part in parts}) > 1:
            raise DataError(f'{where}: "{name}" has other shapes at other clients (accepted: one)')
        column = np.concatenate(parts)
        if self.channels_last and column.ndim == 4:
            column = np.ascontiguousarray(column.transpose(0, 3, 1, 2))
        return column


def _check_features(clients: dict[str, dict[str, Any]], wanted: tuple[str, ...], where: str) -> None:
    """Raise DataError if a client lacks a feature that is wanted."""
    for client, features in clients.items():
        if lacking := [name for name in wanted if name not in features]:
            raise DataError(f'{where}: client "{client}" has no "{lacking[0]}"{suggestion(lacking[0], features)}')
