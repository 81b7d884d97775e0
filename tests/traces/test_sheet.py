"""CSV sheets are converted while they are read: what they hold, what is said of the first wrong cell, and memory."""

import tracemalloc

import pytest

from fedactors.errors import TraceError
from fedactors.traces import sheet
from fedactors.traces.source import RecordingFile


def parsed(text, labels=()):
    return sheet.parse(RecordingFile("x.csv", text.encode()), ("row",), ("from", "to"), labels)


def test_texts_and_numbers_are_those_of_the_rows():
    """Comments and a byte order mark above, quotes around, blank lines between, any line ends."""
    text = '\ufeff# made by hand\n\n Row ,from_s,to,bytes,note\r\n a ,1,2s,3, x \r\n\n"b,\nc",1.5,1h,4,y\n'
    found = parsed(text, labels=("note",))
    assert found.order == ("row", "from", "to", "bytes", "note")
    assert {name: list(texts) for name, texts in found.texts.items()} == {"row": ["a", "b,\nc"], "note": [" x ", "y"]}
    numbers = {name: column.tolist() for name, column in found.numbers.items()}
    second = 10**9
    assert numbers == {"from": [second, 3 * second // 2], "to": [2 * second, 3_600 * second], "bytes": [3, 4]}
    assert {str(column.dtype) for column in found.numbers.values()} == {"int64"}


def test_a_sheet_without_rows_is_empty():
    found = parsed("row,from_s,bytes\n")
    assert (len(found), found.numbers["bytes"].tolist()) == (0, [])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("a,1,2\n\nb,1,x\n", "line 4: bytes 'x' (a whole number >= 0)"),
        ("a,1,2\nb,1,-1\n", "line 3: bytes '-1' (a whole number >= 0)"),
        ("a,1,x\nb,y,2\n", "line 3: from_s 'y' (a time such as 90s, or a number in the column's unit)"),
        ("a,1,x\nb,y,2\nc,1\n", "line 4: 2 fields (3, as in the header)"),
        ('a,1,x\nb,1\n"c"d,1,2\n', "line 4: ',' expected after '\"' (comma-separated values)"),
        ('"a\nb",1,2\nc,1,9223372036854775807\n', "line 4: bytes '9223372036854775807' (a whole number >= 0)"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(rows, said):
    """Lines that are no CSV come first, then rows with too many or too few fields, then columns one after the other."""
    with pytest.raises(TraceError) as error:
        parsed(f"row,from_s,bytes\n{rows}")
    assert str(error.value) == f"x.csv: {said}"


def test_a_sheet_takes_a_few_times_its_size():
    """20,000 rows of 20 bytes; as a list of cells, each a string of Python's, a row would take 670 bytes."""
    text = "row,from_s,to_s,bytes/s\n" + "".join(f"r,{k},{k + 1},{100_000 + k}\n" for k in range(20_000))
    source = RecordingFile("x.csv", text.encode())
    tracemalloc.start()
    try:
        found = sheet.parse(source, ("row",), ("from", "to"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 20_000
    assert peak < 5 * len(source.data)
