"""Tables as lines of text, by hand."""

import pytest

from fedactors.plain_text import aligned, listed

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


def test_names_are_a_part_of_a_sentence():
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
