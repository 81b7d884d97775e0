"""Trips planned by arithmetic against a plodding simulation that looks at every nanosecond."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.trip import TripPlanner
from fedactors.plan import HEARD, NEVER, Outcome
from fedactors.workload import workload
from tests.clock.world_builder import population
from tests.examples import drawn

FAR = 400  # ticks after which the plodder gives up


def on_at(device, t):
    windows = device.get("windows")
    if windows is None:
        return True
    local = t + device.get("shift", 0)
    if device.get("period"):
        local %= device["period"]
    return any(on <= local < off for on, off in windows)


def plod(device, start, steps_work, down, up):
    """Return (downloaded, [end of each step], end of the upload) going tick by tick, or None where it never ends."""
    needs = [down, *steps_work, up]
    ends, t = [], start
    for need in needs:
        done = 0
        while done < need:
            if t >= FAR:
                return ends
            done += on_at(device, t)
            t += 1
        ends.append(t)
    return ends


@st.composite
def devices(draw):
    device = {
        "per_sample": draw(st.integers(1, 5)),
        "latency": draw(st.integers(0, 3)),
        "deadline_aware": draw(st.booleans()),
    }
    if draw(st.booleans()):
        cuts = sorted(draw(st.sets(st.integers(0, 60), min_size=2, max_size=8)))
        device["windows"] = list(zip(cuts[::2], cuts[1::2], strict=False))
        if draw(st.booleans()):
            device["period"] = cuts[-1] + draw(st.integers(0, 10))
            device["shift"] = draw(st.integers(0, device["period"] - 1))
    return device


@drawn(400)
@given(devices(), st.integers(0, 50), st.integers(1, 80), st.integers(1, 7), st.integers(1, 4), st.integers(1, 6))
def test_a_trip_that_pauses_agrees_with_the_plodder(device, start, patience, samples, batch, wanted):
    down = up = 2
    trips = TripPlanner(population([device]), down, up)
    work = workload(samples, batch, epochs=None, steps=wanted)
    deadline = start + patience
    trip = trips.plan(0, 0, start, deadline, work)
    order = trips.settle(trip, deadline)

    step_work = [(work.samples(k + 1) - work.samples(k)) * device["per_sample"] for k in range(wanted)]
    latency = device["latency"]

    def arrives(steps):
        ends = plod(device, start, step_work[:steps], down + latency, up + latency)
        return ends[-1] if len(ends) == steps + 2 else FAR * 2

    if device["deadline_aware"]:
        best = max((k for k in range(1, wanted + 1) if arrives(k) <= deadline), default=0)
    else:
        best = wanted if arrives(wanted) <= deadline else 0
    assert order.heard == (best > 0)
    if best:
        assert order.steps == best
        assert order.outcome is (Outcome.COMPLETE if best == wanted else Outcome.PARTIAL)
        assert order.finished == arrives(best)
        ends = plod(device, start, step_work[:best], down + latency, up + latency)
        assert order.downloaded == ends[0]
        assert order.computed == ends[-2]
        assert (order.down, order.up) == (down, up)
    else:
        assert order.finished == deadline
        assert order.outcome in (Outcome.OFFLINE, Outcome.TOO_SLOW if device["deadline_aware"] else Outcome.LATE)


def one(device, deadline, wanted=5, start=0, closed=None):
    trips = TripPlanner(population([{"per_sample": 10, **device}]), 5, 3)
    trip = trips.plan(0, 0, start, deadline, workload(1, 1, epochs=None, steps=wanted))
    return trips.settle(trip, deadline if closed is None else closed, early=closed is not None)


def test_an_upload_at_the_very_deadline_counts_and_one_tick_later_does_not():
    assert one({}, 5 + 50 + 3).outcome is Outcome.COMPLETE
    late = one({"deadline_aware": False}, 5 + 50 + 2)
    assert (late.outcome, late.steps, late.up) == (Outcome.LATE, 5, 2)
    partial = one({}, 5 + 50 + 2)
    assert (partial.outcome, partial.steps, partial.finished) == (Outcome.PARTIAL, 4, 48)


def test_a_step_that_ends_when_the_window_closes_counts():
    order = one({"windows": [(0, 55), (90, 100)]}, 93)
    assert (order.outcome, order.steps, order.computed, order.finished) == (Outcome.COMPLETE, 5, 55, 93)


def test_too_slow_and_offline_are_told_apart_by_what_an_uninterrupted_trip_would_have_done():
    assert one({}, 17).outcome is Outcome.TOO_SLOW
    assert one({"windows": [(0, 10), (90, 100)]}, 18).outcome is Outcome.OFFLINE
    assert one({"windows": [(0, 10), (90, 100)]}, 17).outcome is Outcome.TOO_SLOW


def test_an_abort_loses_the_work_when_the_window_ends():
    order = one({"windows": [(0, 30), (31, 90)], "abort": True}, 80)
    assert (order.outcome, order.steps, order.finished, order.down, order.up) == (
        Outcome.OFFLINE,
        2,
        30,
        5,
        0,
    )
    kept = one({"windows": [(0, 58)], "abort": True}, 80)
    assert kept.outcome is Outcome.COMPLETE


def test_an_abort_is_called_offline_only_if_the_interruption_is_to_blame():
    """The window outlasts the deadline: uninterrupted, these would have missed it all the same."""
    assert one({"windows": [(0, 1000)], "abort": True}, 17).outcome is Outcome.TOO_SLOW
    assert one({"windows": [(0, 1000)], "abort": True, "deadline_aware": False}, 57).outcome is Outcome.LATE
    assert one({"windows": [(0, 16)], "abort": True}, 17).outcome is Outcome.TOO_SLOW
    assert one({"windows": [(0, 16)], "abort": True}, 18).outcome is Outcome.OFFLINE


def test_a_departure_takes_the_work_in_flight_and_an_upload_at_that_instant_still_counts():
    gone = one({"windows": [(0, 57)], "depart": 57}, 80)
    assert (gone.outcome, gone.finished) == (Outcome.DEPARTED, 57)
    assert one({"windows": [(0, 58)], "depart": 58}, 80).outcome is Outcome.COMPLETE


def test_a_quorum_cancels_and_counts_what_was_moved():
    order = one({}, 80, closed=26)
    assert (order.outcome, order.steps, order.down, order.up) == (Outcome.CANCELLED, 2, 5, 0)
    assert one({}, 80, closed=2).down == 2


@pytest.mark.parametrize("deadline", [NEVER, 10**6])
def test_a_device_that_never_comes_back_is_offline(deadline):
    order = one({"windows": [(0, 30)], "deadline_aware": False}, deadline, closed=None)
    assert order.outcome is Outcome.OFFLINE
    assert order.outcome not in HEARD
