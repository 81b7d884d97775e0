"""Plain lines of progress: now and then, and once how long the run will take."""

import pytest

from fedactors.simulation import progress
from fedactors.simulation.progress import Plain


@pytest.fixture
def played(monkeypatch, capsys):
    """Return a function that plays rounds of some seconds each and returns the lines of progress."""

    def lines(rounds, each):
        now = [100.0]
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        shown = Plain()
        with shown.over("run", rounds):
            for number in range(1, rounds + 1):
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


@pytest.mark.parametrize(("rounds", "each"), [(40, 0.01), (3, 10.0), (6, 0.8)])
def test_what_is_soon_over_has_no_forecast(played, rounds, each):
    assert not [line for line in played(rounds, each) if line.startswith("forecast")]


def test_lines_come_every_five_seconds_and_at_the_end(played):
    rounds = [int(line.split("/")[0].split()[1]) for line in played(20, 2.0) if line.startswith("round")]
    assert rounds == [1, 4, 7, 10, 13, 16, 19, 20]
