"""Data sets of Hugging Face's `datasets` that lie on disk, as `save_to_disk` writes them. Nothing is downloaded.

    dataset: {name: hugging_face, path: reviews, label: stars, inputs: [tokens]}

Needs the extra `datasets`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from fedactors.data.user.arrays import Integers
from fedactors.data.user.held_back import held_back
from fedactors.data.user.parts import RawParts
from fedactors.data.user.raw_part import RawPart
from fedactors.data.user.samples import Keys, owner_column, read_part
from fedactors.data.user.user_data import UserData, stamp
from fedactors.errors import DataError
from fedactors.extras import needed
from fedactors.paths import ScenarioPath


class HuggingFaceData(UserData):
    """A data set, or one with the parts `train`, `test` and perhaps `validation`, from disk."""

    name: Literal["hugging_face"] = "hugging_face"
    path: ScenarioPath
    """Folder that `save_to_disk` wrote."""
    label: str | None = None
    """Column of the label."""
    inputs: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Columns that are inputs; by default all others."""
    weights: str | None = None
    """Column of a sample's weight in the loss."""
    client: str | None = None
    """Column that says whose a sample is: no input, whatever the partition."""
    integers: Integers = "identifiers"
    """What integers are in inputs: `identifiers`, or `values`, which become floats."""
    train_part: str = "train"
    test_part: str = "test"
    validation_part: str = "validation"
    """Names of the parts, where there are several; the last one need not be there."""
    test_share: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """Share of the samples that are kept for testing, drawn by the scenario's seed, where there is one part."""

    def called(self) -> str:
        """Return the folder."""
        return str(self.path)

    def _integers(self) -> Integers:
        return self.integers

    def _stamps(self) -> tuple[Any, ...]:
        return stamp(self.path.path)

    def _keys(self) -> Keys:
        return self._keys_of(Keys(self.label, self.weights, self.inputs, client=self.client))

    def _read(self, keys: Keys, seed: int) -> RawParts:
        library = needed("datasets", "datasets")
        try:
            found = library.load_from_disk(str(self.path.path))
        except Exception as error:  # whatever the library raises
            text = " ".join(str(error).split())[:200]
            raise DataError(f"hugging_face: {self.path.path} cannot be read: {text}") from error
        if not isinstance(found, library.DatasetDict):
            return self._cut(found, keys, seed)
        for name in (self.train_part, self.test_part):
            if name not in found:
                raise DataError(f'{self.path}: has no part "{name}" (accepted: {", ".join(found)})')
        train = self._part(found[self.train_part], "train", keys)
        test = self._part(found[self.test_part], "test", keys)
        return RawParts(train, test, self._validation(found, keys))

    def _validation(self, found: Any, keys: Keys) -> RawPart | None:
        """Return the samples for validation; None if there is no such part, or if it is what the run tests on."""
        name = self.validation_part
        if name not in found or name in (self.train_part, self.test_part):
            return None
        return self._part(found[name], "validation", keys)

    def _cut(self, found: Any, keys: Keys, seed: int) -> RawParts:
        """Return both parts of a data set that is one."""
        if self.test_share is None:
            raise DataError(f"{self.path}: has one part only (accepted: test_share)")
        owners = None
        if keys.owner_of:
            owners = owner_column([keys.owner_of(row) for row in found], str(self.path))
        elif keys.owner in found.column_names:
            owners = owner_column(found[keys.owner][:], str(self.path))
        chosen = held_back(len(found), self.test_share, owners, seed, str(self.path))
        train, test = (found.select(np.flatnonzero(rows)) for rows in (~chosen, chosen))
        return RawParts(self._part(train, "train", keys), self._part(test, "test", keys), tests_by_seed=True)

    def _part(self, part: Any, which: str, keys: Keys) -> RawPart:
        return read_part(part, f"{self.path}: {which}", keys)
