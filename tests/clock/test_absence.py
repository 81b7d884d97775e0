"""A device arrives when it is first on, and departs when it was off for longer than `departs_after`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.absence import stay_by_absence
from fedactors.clock.availability import Availability, RecordingColumns
from fedactors.clock.presence import Stay
from fedactors.errors import ScenarioError
from fedactors.plan import NEVER
from tests.clock.test_devices import HOUR, people

# on for hours 1-2, 3-5, 10-11 of 20; twice exactly four hours apart, within 1-9; once; never
WINDOWS = """device,on,off,first,last
gap,1h,2h,0h,20h
gap,3h,5h,,
gap,10h,11h,,
edge,2h,3h,1h,9h
edge,7h,8h,,
once,0h,1h,0h,20h
"""


def stays(folder, count=3, **group):
    (folder / "w.csv").write_text(WINDOWS)
    trace = {"name": "trace", "path": "w.csv", "at_end": group.pop("at_end", "depart"), **group.pop("trace", {})}
    found = people(folder, [{"availability": trace, "count": count, "departs_after": "4h", **group}])
    return [[t if t == NEVER else t / HOUR for t in column.tolist()] for column in (found.arrive, found.depart)]


def test_departure_by_absence_or_at_the_end_of_the_recording(tmp_path):
    """5 + 4 of the gap of five hours; four hours are not longer than four, so the recording's end at 9; 1 + 4."""
    assert stays(tmp_path) == [[1, 2, 0], [9, 9, 5]]


def test_absences_before_the_run_do_not_count(tmp_path):
    """From hour 6 on: on at 10-11, off for good, 11 + 4 = 15; at 7-8, recorded until 9; never on again."""
    assert stays(tmp_path, trace={"begin": "6h"}) == [[4, 1, NEVER], [9, 3, NEVER]]


def test_a_recording_that_loops_counts_absence_over_its_end(tmp_path):
    """`edge` repeats every 8 h with 4 h and 3 h off: it stays. `once` was on for 1 of 20 h."""
    assert stays(tmp_path, at_end="loop") == [[1, 2, 0], [9, NEVER, 5]]


def test_who_arrives_later_by_the_scenario_is_first_seen_after_that(tmp_path):
    """From 12 h on: 10-11 was over, on again at 21-22 and 23-25 of the second turn, off for five hours: 29."""
    assert stays(tmp_path, at_end="loop", arrive="12h", count=1) == [[21], [29]]


def test_the_scenarios_own_departure_comes_first(tmp_path):
    assert stays(tmp_path, depart="4h") == [[1, 2, 0], [4, 4, 4]]
    assert stays(tmp_path, depart="90min") == [[1, NEVER, 0], [1.5, NEVER, 1.5]]


def test_who_would_join_after_leaving_never_belongs_to_the_population(tmp_path):
    """Of recordings that begin after 1, 2 and 0 h, all in a group that departs after 90 min, one begins too late."""
    (tmp_path / "w.csv").write_text(WINDOWS.replace("edge,2h,3h,1h,9h", "edge,2h,3h,90min,9h"))
    trace = {"name": "trace", "path": "w.csv", "at_end": "depart"}
    found = people(tmp_path, [{"availability": trace, "count": 3, "depart": "90min"}])
    assert found.arrive[1] == found.depart[1] == NEVER
    assert found.depart[[0, 2]].tolist() == [1.5 * HOUR] * 2


def test_devices_that_are_always_on_stay(tmp_path):
    found = people(tmp_path, [{"departs_after": "1s"}])
    assert found.arrive.tolist() == [0] * 4
    assert found.depart.tolist() == [NEVER] * 4


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ({"departs_after": "0s"}, "departs_after must be longer than 0"),
        ({"departs_after": "3d", "availability": {"name": "process", "behaviour": "diurnal"}}, "says itself when its"),
        ({"departs_after": "soon"}, "departs_after"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path, group, said):
    with pytest.raises(ScenarioError, match=said):
        people(tmp_path, [group])


@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=12),
    st.integers(0, 1),
    st.integers(0, 40),
    st.integers(0, 30),
    st.integers(1, 9),
)
def test_it_is_what_looking_at_every_instant_gives(lengths, loops, shift, begin, after):
    edges = np.cumsum(lengths[: len(lengths) // 2 * 2]).astype(np.int64)
    windows = RecordingColumns(np.array([0, len(edges) // 2]), edges[::2].copy(), edges[1::2].copy())
    period = int(edges[-1]) + 2 if loops else 0
    shift = shift % period if loops else shift
    a = Availability(windows, np.zeros(1, np.int64), np.array([shift]), np.array([period]))
    found = stay_by_absence(a, Stay(np.array([begin]), np.array([NEVER])), after)
    on = [a.is_on(0, t) for t in range(400)]
    arrive = next((t for t in range(begin, 200) if on[t]), None)
    assert int(found.arrive[0]) == (NEVER if arrive is None else arrive)
    if arrive is None:
        assert int(found.depart[0]) == NEVER
        return
    gone = (t for t in range(arrive, 300) if on[t] and not any(on[t + 1 : t + after + 2]))
    wanted = next((t + 1 + after for t in gone), NEVER)
    assert int(found.depart[0]) == wanted
