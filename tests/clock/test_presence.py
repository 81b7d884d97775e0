"""The bitmap of who is on, against asking every device one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.presence import Presence, Stay
from fedactors.plan import NEVER
from tests.clock.test_trip import devices, on_at
from tests.clock.world_builder import availability
from tests.examples import drawn


@drawn(300)
@given(
    st.lists(devices(), min_size=1, max_size=5),
    st.lists(st.integers(0, 300), min_size=1, max_size=12),
    st.integers(1, 50),
)
def test_the_bitmap_agrees_with_every_device_and_says_what_comes_next(population, times, slab):
    """Asynchronous servers ask what comes next while devices are on, too: their windows must still end as they do."""
    on = [[k for k, device in enumerate(population) if on_at(device, time)] for time in range(900)]
    shown = Presence(availability(population))
    shown._size = slab  # short slabs: cursors cross many borders
    for time in sorted(times):
        shown.advance(time)
        assert np.flatnonzero(shown.on).tolist() == on[time]
        later = [t for t in range(time + 1, 900) if set(on[t]) - set(on[t - 1])]
        if not shown.on.any():
            assert shown.next_on() == (later[0] if later else NEVER)
        assert time < shown.next_on() <= (later[0] if later else NEVER)  # earlier where windows touch
        changes = [t for t in range(time + 1, 900) if on[t] != on[t - 1]]
        assert time < shown.next_edge() <= (changes[0] if changes else NEVER)


@drawn(200)
@given(devices(), st.integers(0, 200))
def test_windows_answer_alike_one_by_one(device, time):
    a = availability([device])
    assert a.is_on(0, time) == on_at(device, time)
    if on_at(device, time):
        end = a.window_end(0, time)
        assert all(on_at(device, t) for t in range(time, min(end, 500)))
        assert end == NEVER or not on_at(device, end)
    else:
        assert a.window_end(0, time) == time


@drawn(300)
@given(
    st.lists(devices(), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 60)), min_size=5, max_size=5),
    st.lists(st.integers(0, 10**4), min_size=1, max_size=6),
)
def test_a_leap_in_time_is_the_sum_of_its_steps(population, stays, times):
    """Leaps look devices up, steps apply every edge; both end in the same state, and go on alike."""
    a = availability(population)
    stays = stays[: len(population)]
    stay = Stay(np.array([begin for begin, _ in stays]), np.array([NEVER if k % 2 else b + k for b, k in stays]))
    leaping = Presence(a, stay=stay)
    leaping._leap = lambda: 0
    stepping = Presence(a, stay=stay)
    stepping._leap = lambda: 10**6
    for time in sorted(times):
        leaping.advance(time)
        stepping.advance(time)
        assert np.flatnonzero(leaping.on).tolist() == np.flatnonzero(stepping.on).tolist()
        assert leaping.next_edge() == stepping.next_edge()


def test_weeks_between_rounds_cost_no_edges():
    """A million turns of a recording pass between two rounds."""
    shown = Presence(availability([{"windows": [(0, 1), (2, 3)], "period": 5}]))
    shown.advance(10**15)
    assert np.flatnonzero(shown.on).tolist() == [0]
    assert shown.next_edge() == 10**15 + 1


def test_recordings_without_a_window_cost_nothing_however_short_their_turns_are():
    """A recording of one nanosecond in which a device was never on, beside one of five years."""
    shown = Presence(availability([{"windows": [], "period": 1}, {"windows": [(0, 10**17)], "period": 15 * 10**16}]))
    shown.advance(10**9)
    assert np.flatnonzero(shown.on).tolist() == [1]
    assert shown.next_edge() == 10**17
    assert Presence(availability([{"windows": [], "period": 1}])).next_on() == NEVER
