"""The measures of single clients: lines that are appended round by round, and the table that is made of them.

Nothing else can tell what a client's model was good for in a former round, so each evaluated round is a line of
client_metrics.jsonl that has reached the disk before the round is recorded. A run that goes on keeps the lines of its
rounds; when it ends, client_metrics.parquet is made of all of them, one line in memory at a time.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from fedactors.run_files.files import damaged, objects_in, whole_lines
from fedactors.run_files.tables import CLIENT_METRIC_COLUMNS, ParquetTable
from fedactors.run_files.writing import appending, replacing, write_all

LINES = "client_metrics.jsonl"
TABLE = "client_metrics.parquet"


def append(run: Path, number: int, columns: Mapping[str, Sequence[Any]]) -> None:
    """Append the measures after round `number`, in columns `(clients,)`, None where a client has no such measure.

    They are on the disk then. Raises OSError if it does not take all of them.
    """
    finite = {name: [_finite(value) for value in values] for name, values in columns.items()}
    with appending(run / LINES) as file:
        write_all(file, f"{json.dumps({'round': number, **finite})}\n".encode())
        os.fsync(file.fileno())


def carry_over(run: Path, to: Path, rounds: int) -> None:
    """Write the measures of the first `rounds` of a run, if there are any, into the run folder `to`, or its own."""
    if (run / LINES).exists():
        with replacing(to / LINES, sync=True) as file:
            for row in _lines(run):
                if row["round"] <= rounds:
                    file.write(f"{json.dumps(row)}\n".encode())


def refuse_lost(run: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise RunFolderError if the lines are not those of the rounds whose `rows` of metrics have evaluated clients.

    Lines of rounds after these rows are left out: a round that was not recorded any more may have one.
    """
    rounds, evaluated = 0, []
    for row in rows:
        rounds += 1
        evaluated += [rounds] if "clients_evaluated" in row else []
    if [row["round"] for row in _lines(run) if row["round"] <= rounds] != evaluated:
        raise damaged(run / LINES, f"not the {len(evaluated)} lines of the rounds after which clients were evaluated")


def tabulate(run: Path) -> None:
    """Write client_metrics.parquet, if any clients were evaluated. Raises RunFolderError if a line is damaged."""
    names = tuple(dict.fromkeys(name for row in _lines(run) for name in row if name not in CLIENT_METRIC_COLUMNS))
    if not names:
        return
    with ParquetTable(run / TABLE, CLIENT_METRIC_COLUMNS, names) as table:
        for row in _lines(run):
            columns = (row.get(name, repeat(None)) for name in names)
            measures = ((math.nan if value is None else value for value in one) for one in columns)
            table.extend(zip(repeat(row["round"]), row["client"], row["samples"], *measures, strict=False))


def _lines(run: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines, none if there is no file. Raises RunFolderError if one is not what a run writes."""
    path = run / LINES
    if not path.exists():
        return
    for number, row in enumerate(objects_in(path, whole_lines(path)), 1):
        columns = [values for name, values in row.items() if name != "round"]
        lists = all(isinstance(values, list) for values in columns)
        if not (isinstance(row.get("round"), int) and {*CLIENT_METRIC_COLUMNS} <= {*row} and lists):
            raise damaged(path, "not the measures of a round", line=number)
        if len({*map(len, columns)}) != 1:
            raise damaged(path, "columns of unlike lengths", line=number)
        yield row


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
