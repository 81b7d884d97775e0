"""Columns of a table as inputs and labels: numbers standardised by the training part, categories one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.data.user.arrays import AnyArray, word
from fedactors.errors import DataError

Unknown = Literal["error", "zeros"]


class ColumnRules(NamedTuple):
    """What a scenario says of the columns that are inputs."""

    features: tuple[str, ...]
    categorical: frozenset[str]
    standardize: bool
    unknown: Unknown


class ReadTable(NamedTuple):
    """A table and where it is from."""

    table: Any  # of pyarrow
    where: str

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        found: list[str] = self.table.column_names
        return found

    def kind(self, name: str) -> str:
        """Return the type of a column."""
        return str(self.table.schema.field(name).type)

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers."""
        import pyarrow as pa

        kind = self.table.schema.field(name).type
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers, `(rows,)`. Raises DataError if it holds something else, or nothing in a row."""
        import pyarrow as pa

        column = self.filled(name)
        kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
            ways = f"list it under categorical: [{name}]" if is_text else "leave it out of the features"
            raise DataError(f'{self.where}: column "{name}" holds {kind} (accepted: numbers; or {ways})')
        found: NDArray[np.float64] = np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.float64)
        if not (there := np.isfinite(found)).all():
            row = int(there.argmin())
            raise DataError(
                f'{self.where}: column "{name}", row {row + 1}: found {found[row]} (accepted: finite numbers)'
            )
        return found

    def words(self, name: str) -> AnyArray:
        """Return a column as texts, `(rows,)`. Raises DataError if a row has nothing there."""
        return np.array([word(value) for value in self.filled(name).to_pylist()])

    def plain(self, name: str) -> AnyArray:
        """Return a column of integers, floats or texts, as it is. Raises DataError if it is of another type."""
        import pyarrow as pa

        kind = self.filled(name).type
        if pa.types.is_boolean(kind):
            return self.numbers(name).astype(np.int64)
        if pa.types.is_integer(kind):
            return np.asarray(self.filled(name).to_numpy(zero_copy_only=False)).astype(np.int64)
        return self.numbers(name) if pa.types.is_floating(kind) else self.words(name)

    def filled(self, name: str) -> Any:
        """Return a column. Raises DataError if a row has nothing there."""
        column = self.table.column(name).combine_chunks()
        if column.null_count:
            row = int(np.argmin(np.asarray(column.is_valid().to_numpy(zero_copy_only=False))))
            raise DataError(
                f'{self.where}: column "{name}", row {row + 1}: is empty, as {column.null_count:,} in all'
                " (accepted: a value in every row, or without that column)"
            )
        return column


def encoded(tables: Sequence[ReadTable], rules: ColumnRules) -> list[AnyArray]:
    """Return the inputs of each table, `(rows, inputs)`; means, deviations and categories are the first one's."""
    columns = [_encoded_column(tables, name, rules) for name in rules.features]
    return [np.concatenate(parts, axis=1) for parts in zip(*columns, strict=True)]


def _encoded_column(tables: Sequence[ReadTable], name: str, rules: ColumnRules) -> list[AnyArray]:
    """Return a column of each table as inputs, `(rows, 1)`, or `(rows, categories)`."""
    train, *others = tables
    if name in rules.categorical:
        first = _one_hot(train, train, name, "error")
        return [first, *(_one_hot(one, train, name, rules.unknown) for one in others)]
    values = [table.numbers(name) for table in tables]
    if rules.standardize:
        mean, deviation = _moments(values[0])
        values = [(part - mean) / deviation for part in values]
    return [part[:, None] for part in values]


def _moments(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and standard deviation; a column that is always the same has deviation 1 here."""
    least = float(values.min())
    if least == values.max():  # of which the deviation may be 1e-17 when computed
        return least, 1.0
    return float(values.mean()), float(values.std()) or 1.0


def _one_hot(table: ReadTable, train: ReadTable, name: str, unknown: Unknown) -> AnyArray:
    """Return a column of one of the tables as a number for each category of `train`, `(rows, categories)`.

    Categories are the same where their values are. Raises DataError for one that is `unknown`, if that is an error.
    """
    known, words = np.unique(train.words(name)), table.words(name)
    places = np.minimum(np.searchsorted(known, words), len(known) - 1)
    there = known[places] == words
    if unknown == "error" and not there.all():
        row = int(there.argmin())
        types = [table.kind(name), train.kind(name)]
        mine, others = [f" ({kind})" if types[0] != types[1] else "" for kind in types]
        raise DataError(
            f'{table.where}: column "{name}", row {row + 1}: "{words[row]}"{mine} is not among the {len(known)}'
            f" categories of the training data{others} (accepted: those, or unknown: zeros)"
        )
    hot: AnyArray = ((places[:, None] == np.arange(len(known))) & there[:, None]).astype(np.float64)
    return hot
