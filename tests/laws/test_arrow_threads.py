"""Parquet files are read without Arrow's threads: one that still lets go of a buffer of Python's at the end of the
process aborts it (3 of 120 commands did)."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fedactors"
READING = {"read", "iter_batches", "read_row_group", "read_row_groups"}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "ParquetFile" in path.read_text())


def threaded(path):
    """Yield the lines on which columns of a Parquet file are read with threads."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READING:
            told = {word.arg: ast.unparse(word.value) for word in node.keywords}
            if told.get("use_threads") != "False":
                yield node.lineno


def test_law_sees_a_reader_with_threads(tmp_path):
    (tmp_path / "one.py").write_text("file.read(columns=None)\nfile.iter_batches(5, use_threads=False)\n")
    assert list(threaded(tmp_path / "one.py")) == [1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_reader_uses_threads(path):
    assert not list(threaded(path))
