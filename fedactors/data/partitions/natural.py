"""Clients as the data have them: data that come by client, or a column, a key or a function of a sample."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter, ValidationError, ValidationInfo, field_validator

from fedactors.data.base import Data, Info, Int64
from fedactors.data.partitions.assignment import Split, contiguous
from fedactors.errors import DataError, ScenarioError
from fedactors.options import Options
from fedactors.own_code.user_code import Reference

_WHERE = "task.partition"


class NaturalPartition(Options):
    """Every client holds what the data set says is its own."""

    name: Literal["natural"] = "natural"
    by: str | Reference | None = None
    """Whose a sample is: a column of a table, a key of samples that are dictionaries, or a function of a sample,
    `data.py:client_of`. Clients are numbered in the order of what it gives. Not needed for data that come by client."""

    @property
    def owner(self) -> str | Reference | None:
        """What says whose a sample is, for data sets that do not come by client."""
        return self.by

    @field_validator("by", mode="before")
    @classmethod
    def _column_or_function(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None or isinstance(value, Reference):
            return value
        if not isinstance(value, str) or not value:
            raise ValueError('must be a column, a key, or a function such as "data.py:client_of"')
        if ":" not in value:
            return value
        try:
            return TypeAdapter(Reference).validate_python(value, context=info.context)
        except ValidationError as error:
            raise ValueError(error.errors()[0]["msg"]) from None

    def sizes(self, info: Info, clients: int, seed: int) -> Int64:
        """Return the samples of each client, `(clients,)`. Raises ScenarioError if the data do not say."""
        if info.client_sizes is None:
            raise ScenarioError(
                f'{_WHERE}: "{info.name}" does not come by client; accepted: iid, classes or dirichlet; of data with'
                " columns also by: COLUMN; a function of yours may return {client: part} for train and for test"
            )
        if len(info.client_sizes) != clients:
            raise ScenarioError(
                f'{_WHERE}: "{info.name}" comes from {len(info.client_sizes):,} clients, found {clients:,}'
                " in the population"
            )
        return info.client_sizes

    def split(self, labels: Int64, classes: int, sizes: Int64, seed: int) -> Split:
        """Return which samples each client holds; see `Partition.split`."""
        if sizes.sum() != len(labels):
            raise DataError(f"{_WHERE}: {len(labels):,} samples found, accepted: {sizes.sum():,} as announced")
        return contiguous(sizes)

    def holdout(self, data: Data, clients: int, seed: int) -> Split:
        """Return which test samples each client holds out; see `Partition.holdout`."""
        if data.test_clients is None:
            raise ScenarioError(
                f"{_WHERE}: natural: no test sample is of a client that has training samples (accepted: test samples by"
                " client; iid, classes or dirichlet; or evaluation on the whole test set)"
            )
        return contiguous(np.diff(data.test_clients))
