"""Plain lines of progress: now and then, and once how long the run will take; a bar, whose texts are no markup."""

import pytest

from fedactors.simulation import progress
from fedactors.simulation.progress import Live, Plain


@pytest.fixture
def played(monkeypatch, capsys):
    """Return a function that plays rounds of some seconds each and returns the lines of progress."""

    def lines(rounds, each, first=1):
        now = [100.0]
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        shown = Plain()
        with shown.over("run", rounds):
            for number in range(first, rounds + 1):
                shown.round({"round": number, "virtual_seconds": 5.0 * number, "heard": 3, "asked": 4})
                now[0] += each
        return capsys.readouterr().err.splitlines()

    return lines


def test_how_long_it_will_take_is_told_once_the_pace_is_known(played):
    """Rounds of .5 s: after 5 rounds, 2 s after the first, 35 of 40 are left, 17.5 s."""
    lines = played(40, 0.5)
    forecasts = [line for line in lines if line.startswith("forecast")]
    assert forecasts == ["forecast: 18 s more for 35 rounds"]
    assert lines.index(forecasts[0]) == 2, "after the name and the first round"


def test_rounds_of_before_a_run_was_resumed_tell_no_pace(played):
    """Rounds of .5 s from the 101st on: after the 105th, 2 s after the first, 35 are left, 17.5 s; later 15, 7.5 s."""
    lines = played(140, 0.5, first=101)
    assert [line for line in lines if line.startswith("forecast")] == ["forecast: 18 s more for 35 rounds"]
    [later] = [line for line in lines if line.startswith("round 121/")]
    assert later.endswith("left ~10 s")
    assert "left" not in next(line for line in lines if line.startswith("round 101/"))


@pytest.mark.parametrize(("rounds", "each"), [(40, 0.01), (3, 10.0), (6, 0.8)])
def test_what_is_soon_over_has_no_forecast(played, rounds, each):
    assert not [line for line in played(rounds, each) if line.startswith("forecast")]


def test_lines_come_every_five_seconds_and_at_the_end(played):
    rounds = [int(line.split("/")[0].split()[1]) for line in played(20, 2.0) if line.startswith("round")]
    assert rounds == [1, 4, 7, 10, 13, 16, 19, 20]


def test_brackets_in_what_a_bar_shows_are_text(monkeypatch, capsys):
    """A name and notes may hold paths and names of extras: rich would read [/tmp/x] as the end of a style."""
    for name, value in {"TTY_COMPATIBLE": "1", "COLUMNS": "160", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    shown = Live()
    with shown.over("[/b] [red] :x:", 3):
        shown.note("[/tmp/x] pip install 'fedactors[tensorboard]' :warning: 17")
        shown.round({"round": 1, "virtual_seconds": 5.0, "heard": 3, "asked": 4})
    said = capsys.readouterr().err
    assert "[/tmp/x] pip install 'fedactors[tensorboard]' :warning: 17" in said
    assert "[/b] [red] :x:" in said
    assert "heard 3/4" in said


def test_an_accuracy_that_is_no_number_is_left_out():
    row = {"round": 1, "virtual_seconds": 5.0, "heard": 3, "asked": 4}
    assert (
        progress.describe(row | {"accuracy": None}, 2) == progress.describe(row, 2) == "round 1/2  00:00:05  heard 3/4"
    )
    assert progress.describe(row | {"accuracy": 0.5}, 2).endswith("accuracy 0.500")
