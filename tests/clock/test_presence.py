"""The bitmap of who is on, against asking every device one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fedactors.clock.presence import Presence
from fedactors.plan import NEVER
from tests.clock.test_trip import devices, on_at
from tests.clock.world_builder import availability


@settings(max_examples=300, deadline=None)
@given(
    st.lists(devices(), min_size=1, max_size=5),
    st.lists(st.integers(0, 300), min_size=1, max_size=12),
    st.integers(1, 50),
)
def test_the_bitmap_agrees_with_every_device(population, times, slab):
    shown = Presence(availability(population))
    shown._size = slab  # short slabs: cursors cross many borders
    for time in sorted(times):
        shown.advance(time)
        assert shown.available().tolist() == [i for i, device in enumerate(population) if on_at(device, time)]
        if not shown.on.any():
            later = [t for t in range(time + 1, 900) if any(on_at(device, t) for device in population)]
            assert shown.next_on() == (later[0] if later else NEVER)


@settings(max_examples=200, deadline=None)
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
