"""Tables as lines of text, by hand."""

import pytest

from fedactors.text_tables import aligned

ROWS = [["", "steps", "share"], ["phones", "1,200", "5%"], ["tablets", "30", "12.5%"]]


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (0, ["         steps  share", " phones  1,200     5%", "tablets     30  12.5%"]),
        (1, ["         steps  share", "phones   1,200     5%", "tablets     30  12.5%"]),
        (None, ["         steps  share", "phones   1,200  5%", "tablets  30     12.5%"]),
    ],
)
def test_columns_are_flush(left, expected):
    assert aligned(ROWS, left) == expected
