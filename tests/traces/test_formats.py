"""The registry: a file is known by its content, and whatever is wrong is one TraceError."""

import gzip
import os
import time

import pytest

from fedactors.errors import TraceError
from fedactors.traces.format_registry import formats, read

CSV = "device,on_s,off_s\na,0,5\n"


def test_formats_lists_every_format_once():
    names = [kind.name for kind in formats()]
    assert len(set(names)) == len(names)
    assert {"csv", "parquet", "flash"} <= set(names)
    assert all(kind.gives and kind.description for kind in formats())


def test_a_named_format_is_used_whatever_the_content(written):
    with pytest.raises(TraceError, match="damaged JSON"):
        read(written(CSV), format="flash")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (gzip.compress(CSV.encode(), mtime=0)[:-9], "damaged gzip"),
        (gzip.compress(CSV.encode(), mtime=0) + b"more", "damaged gzip"),
        (b"\x1f\x8b", "damaged gzip"),
        (b"hello", "a file of no known format (csv, "),
        (b"\x00" * 100, "a file of no known format"),
        (b" \n \n", "a file of no known format"),
        (CSV.encode() + b"\xff,1,2\n", "line 3: bytes that are no text"),
        (b"PAR1 and nothing", "cannot be read as Parquet"),
    ],
)
def test_unreadable_files(written, content, message):
    path = written(content)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_paths_that_are_no_file(tmp_path):
    with pytest.raises(TraceError, match="no such file"):
        read(tmp_path / "absent")
    with pytest.raises(TraceError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(TraceError):
        read("a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TraceError, match="not a regular file"):
        read(tmp_path / "pipe")


def test_wrong_words_get_a_suggestion(written):
    path = written(CSV)
    with pytest.raises(TraceError, match='format "parket"; did you mean "parquet"'):
        read(path, format="parket")
    with pytest.raises(TraceError, match='a rule "when: wifi" for a csv file'):
        read(path, when="wifi")


@pytest.mark.parametrize(
    "text",
    [
        CSV + "x" * 10_000_000 + ",1,2\n",
        CSV + "a," + "1" * 10_000_000 + ",2\n",
        CSV + "a,1" + "x" * 100_000 + ",2\n",
        '{"a": {"messages": "' + "x" * 10_000_000 + '"}}',
        '{"a": {"messages": "2020-02-02 09:00:00' + " " * 10_000_000 + '"}}',
        "x" * 10_000_000,
    ],
)
def test_a_long_line_is_no_trouble(written, text):
    begun = time.perf_counter()
    with pytest.raises(TraceError) as caught:
        read(written(text))
    assert len(str(caught.value)) < 400
    assert time.perf_counter() - begun < 5
