"""Data sets that a Python function of the user returns.

    dataset: {name: torch, factory: "data.py:load", arguments: {year: 2024}}

The function returns training data, test data and, if there are some, validation data: as a tuple, or as a dictionary
with the keys `train`, `test` and `validation`. Each is a map-style data set (`torch.utils.data.Dataset`, a list, or
anything with a length and items) of samples `(input, label)` or dictionaries; or arrays `(inputs, labels)`; or a
dictionary of columns; or a dictionary of such parts by client. It must return the same data at every call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from fedactors.arguments import Arguments
from fedactors.data.user.arrays import Integers
from fedactors.data.user.assembly import LoadedData
from fedactors.data.user.client_parts import read_clients
from fedactors.data.user.parts import RawParts, parts_of
from fedactors.data.user.samples import Keys
from fedactors.data.user.user_data import UserData, twice
from fedactors.errors import DataError
from fedactors.own_code.user_code import Reference, telling


class TorchData(UserData):
    """Data that a function returns."""

    name: Literal["torch"] = "torch"
    factory: Reference
    """A function, `data.py:load` (relative to the scenario) or `package.module:load`."""
    arguments: Arguments = Field(default_factory=dict)
    """Keyword arguments of the function."""
    label: str | None = None
    """Key of the label, where samples are dictionaries."""
    inputs: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Keys of the inputs, where samples are dictionaries; by default all others."""
    weights: str | None = None
    """Key of a sample's weight in the loss, where samples are dictionaries."""
    client: str | None = None
    """Key that says whose a sample is, where samples are dictionaries: no input, whatever the partition."""
    integers: Integers = "identifiers"
    """What integers are in inputs: `identifiers`, which a model gets as they are, or `values`, which become floats."""

    def called(self) -> str:
        """Return the function's name."""
        return str(self.factory)

    def _integers(self) -> Integers:
        return self.integers

    def _stamps(self) -> tuple[Any, ...]:
        return self.factory.module, self.factory.attribute, json.dumps(self.arguments, sort_keys=True)

    def _checked(self, seed: int) -> LoadedData:
        self._function()  # imports its file, and torch perhaps: that takes longer than most data
        return twice(lambda: self._assembled(seed), self.called())

    def _keys(self) -> Keys:
        return self._keys_of(Keys(self.label, self.weights, self.inputs, client=self.client))

    def _read(self, keys: Keys, seed: int) -> RawParts:
        where = self.called()
        function = self._function()
        with telling(self.factory, "raised", DataError):
            found = function(**self.arguments)
        with telling(self.factory, "an item of its data raised", DataError):
            parts = parts_of(found, where)
            read = {which: read_clients(part, f"{where}: {which}", keys) for which, part in parts.items()}
        return RawParts(read["train"], read["test"], read.get("validation"))

    def _function(self) -> Callable[..., Any]:
        """Return the user's function. Raises DataError if it is none."""
        with telling(self.factory, "raised", DataError):
            found = self.factory.load()
        if not callable(found):
            kind = type(found).__name__
            raise DataError(f"{self.called()}: is {kind} (accepted: a function that returns train and test)")
        return found  # type: ignore[no-any-return]
