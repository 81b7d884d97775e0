"""When a device was on until now: against the sum over all windows, and by how many of them are looked at."""

from bisect import bisect_right
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.events.seen_windows import SeenWindows
from fedactors.plan import NEVER
from tests.examples import drawn


def noted(switches):
    seen = SeenWindows()
    for number, time in enumerate(switches):
        seen.note(time, on=not number % 2)
    return seen


@drawn(200)
@given(st.lists(st.integers(0, 6), max_size=12), st.integers(0, 40), st.integers(0, 40))
def test_on_time_is_the_sum_over_all_windows(gaps, begin, length):
    switches = [sum(gaps[: k + 1]) for k in range(len(gaps))]
    seen = noted(switches)
    pairs = list(zip(switches[::2], [*switches[1::2], NEVER], strict=False))
    end = begin + length
    expected = sum(max(0, min(off, end) - max(on, begin)) for on, off in pairs)
    assert seen.elapsed(end) - seen.elapsed(begin) == expected
    spans = list(seen.spans(begin))
    assert sum(min(off, end) - min(on, end) for on, off in spans) == expected
    assert all(first[1] < second[0] for first, second in pairwise(spans)), "joined where they touch"
    assert all(on < off and on >= begin for on, off in spans)


class Counted(list):
    """A list that counts how often one of it is looked at."""

    looked = 0

    def __getitem__(self, place):
        self.looked += 1
        return super().__getitem__(place)


def looked_at(windows):
    """Return how many times a device has been looked at for one stretch at the end of so many windows."""
    seen = noted(range(0, 20 * windows, 10))
    columns = ("_on", "_off", "_before")
    for name in columns:
        setattr(seen, name, Counted(getattr(seen, name)))
    now = 20 * windows
    assert seen.elapsed(now) - seen.elapsed(now - 15) == 5
    assert list(seen.spans(now - 15)) == [(now - 15, now - 10)]
    return sum(getattr(seen, name).looked for name in columns)


def test_a_long_past_costs_little():
    """A thousand times as many windows are ten more to look at, in each of three searches (and a search sees them)."""
    assert bisect_right(Counted(range(1000)), 500) == 501
    few, many = looked_at(10), looked_at(10_000)
    assert 3 <= few < many < few + 50
