"""What whole bytes per second change in the times of transfers: the figures that docs/traces.md gives."""

import numpy as np
import pytest

from fedactors.plan import SECOND
from fedactors.traces.format_registry import read_series

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)  # bytes


def lines_of(path):
    """Return (bytes, ms) of each line of a log, in the order of time, each record once."""
    cells = [text.split() for text in dict.fromkeys(path.read_text().splitlines()) if text]
    lines = [[int(row[k]) for k in (0, 1, 4, 5)] for row in cells]
    if lines[-1][0] < lines[0][0]:
        lines.reverse()
    lines.sort(key=lambda line: line[0])
    return np.array([line[2:] for line in lines if line[3]])


def exact(path):
    """Return (times in s, bytes downloaded until then) at the ends of the lines of a log."""
    parts = np.concatenate(([[0, 0]], lines_of(path))).cumsum(axis=0)
    return parts[:, 1] / 1000, parts[:, 0].astype(float)


def rounded(path):
    """Return (times in s, bytes downloaded until then) as our reader has them."""
    ends, rates = zip(*((end, rate) for _, end, rate in read_series(path).pieces(0)), strict=True)
    times = np.concatenate(([0], ends)) / SECOND
    return times, np.concatenate(([0.0], np.cumsum(np.diff(times) * rates)))


def ends_of(curve, starts, size):
    """Return when transfers of `size` bytes end; nan for those beyond the recording."""
    times, loaded = curve
    target = np.interp(starts, times, loaded) + size
    after = np.searchsorted(loaded, target)
    after[after == len(loaded)] = 0
    found = times[after - 1] + (target - loaded[after - 1]) * (times[after] - times[after - 1]) / (
        loaded[after] - loaded[after - 1]
    )
    return np.where(after > 0, found, np.nan)


def test_a_curve_worked_by_hand():
    """100 bytes in 1 s, none for 2 s, 50 bytes in 1 s."""
    curve = np.array([0.0, 1.0, 3.0, 4.0]), np.array([0.0, 100.0, 100.0, 150.0])
    assert ends_of(curve, np.array([0.5, 1.5, 3.5]), 25.0) == pytest.approx([0.75, 3.5, 4.0])
    assert np.isnan(ends_of(curve, np.array([3.9]), 25.0)).all()


def test_how_far_a_transfer_ends_from_that_of_exact_rates(recording):
    off = []
    for path in sorted(recording("hsdpa-3g").glob("*/*.log")):
        true, ours = exact(path), rounded(path)
        assert true[0][-1] == pytest.approx(ours[0][-1])
        starts = np.arange(0.0, true[0][-1], 0.1)
        for size in SIZES:
            errors = np.abs(ends_of(true, starts, size) - ends_of(ours, starts, size))
            off.append(errors[~np.isnan(errors)])
    off = np.concatenate(off)
    assert len(off) > 500_000
    assert np.median(off) < 5e-6
    assert np.quantile(off, 0.99) < 2e-3
    assert 0.1 < off.max() < 0.6, "at worst half a second, where a transfer ends in or after an outage"
