"""A file of no known format is told what is wrong with it, beside the format that it comes nearest to."""

import pytest

from fedactors.errors import TraceError
from fedactors.traces.format_registry import read_any


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("0\n5\n1\n", "; nearest is mahimahi: line 3: time runs backwards: 1 after 5"),
        ("0\n5\n7\n9\nx\n", "; nearest is mahimahi: line 5: time 'x'"),
        ("0 1\n1 2\n2 3\n3 4\n4\n", "; nearest is cooked: line 5: 1 columns"),
        ("device;on;off\nphone;0;9h\n", "; nearest is csv, but its columns are separated by semicolons, not commas"),
        ("device\ton\toff\nphone\t0\t9h\n", "; nearest is csv, but its columns are separated by tabs, not commas"),
        ("row;from_s;to_s;bytes/s\n", "; nearest is rates, but its columns are separated by semicolons"),
        ("device,start,end\nphone,0,9h\n", "; nearest is csv: no column on, off in 'device,start,end'"),
        ("device,on\nphone,0\n", "; nearest is csv: no column off in 'device,on'"),
        ("row,from_s,until_s,bytes/s\na,0,5,7\n", "; nearest is rates: no column to in"),
        ('{"a": [', "; damaged JSON"),
        ('{"a": [1]}', "; it is JSON, but neither"),
        ("hello", "a file of no known format (csv"),
        ("dear reader, this is a letter, not a table", "a file of no known format (csv"),
    ],
)
def test_what_is_wrong_with_the_nearest_format(written, content, words):
    path = written(content)
    with pytest.raises(TraceError) as caught:
        read_any(path)
    assert str(caught.value).startswith(f"{path}: a file of no known format")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 600
