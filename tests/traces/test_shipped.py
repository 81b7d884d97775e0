"""The project's own traces: each can be read without repair, and says whether it was recorded or made up."""

from pathlib import Path

import pytest

from fedactors.traces.format_registry import read_any, read_series

TRACES = Path(__file__).parents[2] / "traces"
FILES = sorted(TRACES.rglob("*.csv"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TRACES)))
def test_it_can_be_read_and_says_what_it_is(path):
    assert len(read_any(path, strict=True))
    first = path.read_text().splitlines()[0]
    assert first.startswith(("# synthetic", "# recorded"))


def test_competition_leaves_less():
    series = read_series(TRACES / "recorded" / "participation.csv")
    means = [series.mean(row) for row in range(len(series))]
    assert series.names == ("T0", "T30", "T50", "T70", "T90")
    assert means == sorted(means, reverse=True)
