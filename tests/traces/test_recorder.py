"""Recording on the machine at hand: short rounds, and what a file says about itself."""

import itertools
import resource
import subprocess
import sys

import numpy as np
import pytest

from fedactors.cli.main import main
from fedactors.traces import recorder
from fedactors.traces.format_registry import read, read_series
from fedactors.traces.recorder import Protocol, Training, participation, usage
from fedactors.traces.series import FULL_SHARE


def test_rounds_are_recorded_beside_a_competitor_that_works():
    """What is left depends on the machine and its other guests; that the competitor takes time does not."""
    told, before = [], resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    series = participation(Protocol(competitors=(0, 90), rounds=4, deadline=0.1, epochs=2), told.append)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before > 0.04
    assert series.names == ("T0", "T90")
    assert all(0 <= value <= FULL_SHARE for row in range(2) for _, _, value in series.pieces(row))
    assert series.mean(0) > 0
    assert series.end.tolist() == [4 * 10**8] * 2
    assert len(told) == 3


def test_training_learns():
    """Not that it matters: but a step is a real one."""
    training = Training()
    before = training._w.copy()
    training.step()
    assert np.isfinite(training._w).all()
    assert not np.array_equal(before, training._w)


def test_usage_counts_ticks_and_joins_quiet_samples(monkeypatch):
    """Idle 60 of 100 ticks, then 5 of 50: 60 %, 10 % free. Load 0.2, 0.2, 3.0 on two cores, limit 0.5."""
    ticks = iter([(0, 0), (100, 60), (150, 65), (150, 65)])
    loads = iter(itertools.chain.from_iterable([value, value] for value in (0.2, 0.2, 3.0)))
    monkeypatch.setattr(recorder, "_processor_time", lambda: next(ticks))
    monkeypatch.setattr(recorder.os, "getloadavg", lambda: (next(loads), 0, 0))
    monkeypatch.setattr(recorder.os, "cpu_count", lambda: 2)
    series, timeline = usage(0.03, every=0.01)
    assert [value for _, _, value in series.pieces(0)] == [600_000, 100_000, FULL_SHARE]
    ((on, off),) = timeline.windows(0)
    assert off - on == 2 * 10**7
    assert on == timeline.first[0]
    assert timeline.last[0] - on == 3 * 10**7


def test_ticks_that_are_counted_backwards_are_no_share_below_0_or_above_1(monkeypatch):
    """The time waited for disks may fall, as the manual of proc says; the other columns are no better on some systems.

    Idle -5 of 95 ticks, then 60 of 50, then all ticks fall: nothing, all and all are free.
    """
    ticks = iter([(100, 50), (195, 45), (245, 105), (240, 100)])
    monkeypatch.setattr(recorder, "_processor_time", lambda: next(ticks))
    series, _ = usage(0.03, every=0.01)
    assert [value for _, _, value in series.pieces(0)] == [0, FULL_SHARE]


def test_the_command_writes_files_that_say_how_they_were_made(tmp_path, capsys):
    path = tmp_path / "mine.csv"
    words = ["--rounds", "2", "--deadline", "0.02", "--competitors", "0,50"]
    assert main(["traces", "record", str(path), *words]) == 0
    assert read_series(path, strict=True).names == ("T0", "T50")
    head = path.read_text().splitlines()[:6]
    assert head[0].startswith("# recorded by fedactors traces record")
    assert any("cores" in line for line in head)
    assert (
        main(["traces", "record", str(tmp_path / "use.csv"), "--mode", "usage", "--seconds", "0.2", "--every", "0.1"])
        == 0
    )
    assert len(read_series(tmp_path / "use.csv")) == 1
    assert len(read(tmp_path / "use.windows.csv")) == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--competitors", "²"], "--competitors ² (accepted: percentages from 0 to 100"),
        (["--competitors", "120"], "--competitors 120 (accepted: percentages from 0 to 100"),
        (["--rounds", "0"], "--rounds 0 (accepted: 1 or more)"),
        (["--deadline", "-1"], "--deadline -1.0 (accepted: seconds above 0)"),
    ],
)
def test_what_cannot_be_recorded_is_told(tmp_path, capsys, words, message):
    assert main(["traces", "record", str(tmp_path / "x.csv"), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_raspberry_pi_needs_numpy_and_no_more(tmp_path):
    """Recording works where torch, ray, simpy and pyarrow are not installed."""
    probe = (
        "import sys\n"
        "for name in ('torch', 'ray', 'simpy', 'pyarrow', 'sklearn', 'psutil'): sys.modules[name] = None\n"
        "from fedactors.cli.main import main\n"
        "sys.exit(main(['traces', 'record', sys.argv[1], '--rounds', '1', '--deadline', '0.01']))\n"
    )
    words = [sys.executable, "-c", probe, str(tmp_path / "pi.csv")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
