"""Tables and rows of a run of any length: all of them are on disk, and few in memory."""

import json

import pyarrow.parquet as pq

from fedactors.plan import OUTCOME_CODES, Outcome
from fedactors.run_files.tables import ORDER_COLUMNS, ParquetTable, rows_of
from fedactors.simulation.record.metric_rows import MetricRows


def test_a_table_of_any_length_is_read_back_as_it_was_written(tmp_path):
    """Outcomes come in another order in every part, whose dictionaries differ therefore."""
    kinds = list(Outcome)
    rows = [(k // 7, k, 0, 5, k % 5, kinds[k // 90 % 3 - k % 2], *range(k, k + 6)) for k in range(25_000)]
    table = ParquetTable(tmp_path / "orders.parquet", ORDER_COLUMNS)
    for row in rows:
        table.add((*row[:5], OUTCOME_CODES[row[5]], *row[6:]))
        assert len(table._rows) < 256
    table.close()
    assert list(rows_of(tmp_path / "orders.parquet", ORDER_COLUMNS)) == rows
    parts = pq.ParquetFile(tmp_path / "orders.parquet").metadata
    assert [parts.row_group(part).num_rows for part in range(parts.num_row_groups)] == [10_240, 10_240, 4_520]


def test_rows_are_those_added_and_the_last_are_at_hand(tmp_path):
    path, added = tmp_path / "metrics.jsonl", [{"round": k, "train_loss": 1 / k} for k in range(1, 41)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in added) + '{"rou')
    rows = MetricRows(path)
    assert (len(rows), rows.last, list(rows)) == (0, [], [])
    for row in added:
        rows.add(row)
    assert len(rows) == 40
    assert list(rows) == added
    assert rows.last == added[-16:]


def test_rows_that_are_in_the_file_already_are_read_by_each_loop(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f'{{"round": {k}}}\n' for k in range(1, 6)))
    rows = MetricRows(path, 3)
    assert [row["round"] for row in rows] == [row["round"] for row in rows] == [1, 2, 3]
    rows.add({"round": 4})
    assert (len(rows), [row["round"] for row in rows][-1]) == (4, 4)
