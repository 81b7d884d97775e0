"""Columns of on-time against the same questions asked of one device after the other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock import ontime
from fedactors.plan import NEVER
from tests.clock.world_builder import availability
from tests.examples import drawn

LENGTHS = st.integers(1, 50) | st.integers(NEVER // 8, NEVER) | st.sampled_from([NEVER // 4, NEVER // 2, NEVER])
TIMES = st.integers(0, 100) | st.integers(0, NEVER // 4)


@st.composite
def repeating(draw):
    """Draw a device whose recording repeats after up to 146 years, and may have windows of any length."""
    period = draw(LENGTHS)
    cuts = sorted(draw(st.sets(st.integers(0, period), min_size=2, max_size=6)))
    windows = list(zip(cuts[::2], cuts[1::2], strict=False))
    return {"windows": windows, "period": period, "shift": draw(st.integers(0, period - 1))}


@drawn(300)
@given(
    st.lists(repeating(), min_size=1, max_size=5), st.integers(0, NEVER), st.integers(1, 100) | st.integers(1, NEVER)
)
def test_columns_agree_with_devices_however_long_their_recordings_are(devices, time, more):
    a = availability(devices)
    everybody = np.arange(len(devices))
    elapsed = ontime.elapsed(a, everybody, np.full(len(devices), time))
    assert elapsed.tolist() == [a.elapsed(k, time) for k in everybody.tolist()]
    reached = ontime.reach(a, everybody, elapsed + more + 1)
    assert reached.tolist() == [a.reach(k, a.elapsed(k, time) + more + 1) for k in everybody.tolist()]
