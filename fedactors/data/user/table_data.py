"""Tables in CSV and Parquet files, by the names of their columns.

    dataset: {name: csv, train: people.csv, label: income, categorical: [town], test_share: 0.2}

Numbers are standardised by the mean and the deviation of all training samples; a real federation would have to agree
on these. A label of floats is a value (regression), one of texts or integers a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import Self

from fedactors.data.user.held_back import held_back
from fedactors.data.user.parts import RawParts
from fedactors.data.user.raw_part import RawPart
from fedactors.data.user.samples import Keys, owner_column
from fedactors.data.user.table_columns import ColumnRules, ReadTable, Unknown, encoded
from fedactors.data.user.user_data import UserData, stamps
from fedactors.errors import DataError, suggestion
from fedactors.paths import ScenarioPath

Names = Annotated[tuple[str, ...], Field(strict=False)]


class TableData(UserData):
    """A table, or one for training and one for testing."""

    name: Literal["csv", "parquet"]
    train: ScenarioPath
    """File of the training data, relative to the scenario; of all data with `test_share`."""
    test: ScenarioPath | None = None
    """File of the test data."""
    validation: ScenarioPath | None = None
    """File of the validation data, if there are some."""
    test_share: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """Share of the rows that are kept for testing, drawn by the scenario's seed; of each client's rows, if they come by
    client."""
    label: str
    """Column of the label."""
    features: Names = ()
    """Columns that are inputs; by default all others."""
    categorical: Names = ()
    """Inputs that become one number for each category, 1 for the row's own and 0 for the others."""
    unknown: Unknown = "error"
    """What to do with categories of the test data that no training sample has."""
    standardize: bool = True
    """Take the training data's mean from each number, and divide by its standard deviation."""
    weights: str | None = None
    """Column of a sample's weight in the loss."""
    client: str | None = None
    """Column that says whose a sample is: no input, whatever the partition."""
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    """What parts the columns of a CSV file."""

    @model_validator(mode="after")
    def _check_test_or_share(self) -> Self:
        if (self.test is None) == (self.test_share is None):
            raise ValueError("give either test, a file, or test_share")
        return self

    def called(self) -> str:
        """Return the file's name."""
        return str(self.train)

    def _stamps(self) -> tuple[Any, ...]:
        return stamps(self.train, self.test, self.validation)

    def _keys(self) -> Keys:
        return self._keys_of(Keys(self.label, self.weights, self.features, client=self.client))

    def _read(self, keys: Keys, seed: int) -> RawParts:
        train, *given = self._tables(keys)
        rules = self._rules(train, keys)
        owners = _owners(train, keys)
        others = [self._checked_part(table, rules, keys) for table in given]
        if self.test is None:
            chosen = held_back(train.table.num_rows, self.test_share or 0.0, owners, seed, str(self.train))
            others.insert(0, (_part(train, chosen), None if owners is None else owners[chosen]))
            train = _part(train, ~chosen)
            owners = None if owners is None else owners[~chosen]
        x, *further = encoded([train, *(table for table, _ in others)], rules)
        read = [_raw(table, inputs, whose, keys) for (table, whose), inputs in zip(others, further, strict=True)]
        validation = read[1] if self.validation else None
        return RawParts(_raw(train, x, owners, keys), read[0], validation, tests_by_seed=self.test is None)

    def _checked_part(self, table: ReadTable, rules: ColumnRules, keys: Keys) -> tuple[ReadTable, Any]:
        """Return a further file, and whose its rows are. Raises DataError if it lacks a column."""
        self._rules(table, keys)
        _check_columns(table, rules.features)
        return table, _owners(table, keys)

    def _tables(self, keys: Keys) -> list[ReadTable]:
        """Return the files. Columns whose values are names are texts where a CSV file looks otherwise than another.

        01 is 1 in a file of numbers, and stays 01 beside A1. Integers and floats are compared by their values.
        """
        files = [file for file in (self.train, self.test, self.validation) if file is not None]
        tables = [self._table(file) for file in files]
        if self.name == "parquet" or len(files) == 1:
            return tables
        by_client = tables[:1] if self.test is None else tables[:2]  # nobody asks whose validation samples are
        texts = _of_several_types(set(self.categorical), tables)
        texts += _of_several_types({keys.owner} if keys.owner else set(), by_client)
        return [self._table(file, texts) for file in files] if texts else tables

    def _rules(self, table: ReadTable, keys: Keys) -> ColumnRules:
        """Return what the columns are. Raises DataError if one is missing, or is two things at once."""
        _check_columns(table, (self.label, *self.features, *self.categorical, *sorted(keys.apart)))
        others = [name for name in table.names if name != self.label and name not in keys.apart]
        features = self.features or tuple(others)
        for name in self.categorical:
            if name not in features:
                raise DataError(f'{table.where}: categorical: "{name}" is no input{suggestion(name, features)}')
        if self.label in features:
            raise DataError(f'{table.where}: features: "{self.label}" is the label{suggestion("", others)}')
        if not features:
            raise DataError(f"{table.where}: has no column besides the label (accepted: at least one input)")
        return ColumnRules(features, frozenset(self.categorical), self.standardize, self.unknown)

    def _table(self, file: ScenarioPath, texts: Sequence[str] = ()) -> ReadTable:
        """Return a file as it is read, some columns of CSV as `texts`. Raises DataError if it cannot be."""
        import pyarrow as pa

        if not file.path.is_file():
            raise DataError(f"{self.name}: {file.path}: no such file (a path is relative to the scenario's folder)")
        try:
            table = self._opened(file, texts)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            text = " ".join(str(error).split())[:200]
            raise DataError(f"{self.name}: {file.path} cannot be read: {text}") from error
        twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
        if twice:
            raise DataError(f'{file}: two columns are called "{twice[0]}" (accepted: a name for each)')
        if not table.num_rows:
            raise DataError(f"{file}: has no rows (accepted: at least one)")
        return ReadTable(table, str(file))

    def _opened(self, file: ScenarioPath, texts: Sequence[str]) -> Any:
        if self.name == "parquet":
            from pyarrow import parquet

            return parquet.ParquetFile(file.path).read(use_threads=False)
        from pyarrow import csv, string

        parsing = csv.ParseOptions(delimiter=self.delimiter)
        convert = csv.ConvertOptions(
            strings_can_be_null=True, null_values=["", "NA", "null"], column_types=dict.fromkeys(texts, string())
        )
        return csv.read_csv(
            file.path, csv.ReadOptions(use_threads=False), parse_options=parsing, convert_options=convert
        )


def _of_several_types(names: set[str], tables: Sequence[ReadTable]) -> list[str]:
    """Return the columns, of those `names` that all tables have, of several types that are not all numbers."""
    shared = names.intersection(*(table.names for table in tables))
    mixed = [name for name in shared if not all(table.is_number(name) for table in tables)]
    return sorted(name for name in mixed if len({table.kind(name) for table in tables}) > 1)


def _check_columns(table: ReadTable, wanted: Sequence[str]) -> None:
    """Raise DataError if the table lacks a column that is wanted."""
    for name in wanted:
        if name not in table.names:
            raise DataError(f'{table.where}: no column "{name}"{suggestion(name, table.names)}')


def _part(table: ReadTable, chosen: Any) -> ReadTable:
    return table._replace(table=table.table.take(np.flatnonzero(chosen)))


def _owners(table: ReadTable, keys: Keys) -> Any:
    """Return whose each row is; a function of the user sees rows as dictionaries."""
    owners: Sequence[Any] | None = None
    if keys.owner_of:
        owners = [keys.owner_of(row) for row in table.table.to_pylist()]
    elif keys.owner:
        owners = table.filled(keys.owner).to_pylist()
    return owner_column(owners, table.where)


def _raw(table: ReadTable, x: Any, owners: Any, keys: Keys) -> RawPart:
    label = table.plain(keys.label or "")
    weights = table.numbers(keys.weight) if keys.weight else None
    return RawPart((("", x),), label, weights, owners)
