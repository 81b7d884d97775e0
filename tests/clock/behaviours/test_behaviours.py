"""Behaviours of devices: worked by hand, and the same Plans whatever computes and whenever it is resumed."""

import textwrap
from dataclasses import replace

import numpy as np
import pytest

from fedactors.clock.behaviours.access_point import AccessPoint
from fedactors.clock.behaviours.base import Behaviour
from fedactors.clock.behaviours.battery import Battery
from fedactors.clock.behaviours.diurnal import Diurnal
from fedactors.clock.behaviours.making import BehavingGroup
from fedactors.clock.clock import planner
from fedactors.clock.events.event_world import EventWorld
from fedactors.clock.synchronous import Rounds, synchronous
from fedactors.errors import ScenarioError
from fedactors.plan import SECOND, Outcome
from fedactors.scenario.model import Scenario
from fedactors.simulation.prepare import prepare
from fedactors.workload import workload
from tests.clock.world_builder import population

RULES = Rounds(
    rounds=1, ask=None, among="available", quorum=None, deadline=None, until=None, before=0, during=0, after=0
)
HOUR = 3600 * SECOND


def play(devices, make, rules=RULES, steps=3, sizes=(5, 3)):
    """Return the Plans of devices that all belong to one behaving group: 5 ns down, steps, 3 ns up."""
    people = replace(population(devices), behaving=[BehavingGroup(0, len(devices), make)])
    works = [workload(steps, 1, epochs=None, steps=steps) for _ in devices]
    world = EventWorld(people, planner(people, 1, *sizes, 0), works, 1, np.zeros(len(devices), bool))
    process = world.env.process(synchronous(world, rules))
    while process.is_alive:
        world.step()
    if not process.ok:
        raise process.value
    return list(world.plans), process.value


class Tunnel(Behaviour):
    """Off from 20 until 50."""

    def play(self, device):
        yield device.timeout(20)
        device.off()
        assert device.stage == "off"  # at once, although a step that ends at this instant counts
        yield device.timeout(30)
        device.on()


def test_a_trip_waits_while_its_device_is_off():
    """5 ns down, a step until 15, a step interrupted at 20 and done at 55, a step until 65, 3 ns up."""
    (plan,), _ = play([{"per_sample": 10}], Tunnel)
    (order,) = plan.orders
    assert (order.downloaded, order.computed, order.finished, order.outcome) == (5, 65, 68, Outcome.COMPLETE)


def test_a_device_decides_anew_after_an_interruption_that_nobody_foresaw():
    """With a deadline of 60 it aims at three steps; when it is on again at 50 one step is done, the second ends at 55,
    a third would end at 65: it uploads two, until 58. A trip that always aims at three would be late."""
    (plan,), _ = play([{"per_sample": 10}], Tunnel, replace(RULES, deadline=60))
    (order,) = plan.orders
    assert (order.steps, order.finished, order.outcome) == (2, 58, Outcome.PARTIAL)


def test_work_that_an_interruption_loses():
    (plan,), _ = play([{"per_sample": 10, "abort": True}], Tunnel)
    (order,) = plan.orders
    assert (order.steps, order.finished, order.outcome) == (1, 20, Outcome.OFFLINE)


def test_a_step_that_ends_when_the_device_goes_off_has_been_done():
    (plan,), _ = play([{"per_sample": 5}], Tunnel)
    assert plan.orders[0].computed == 20
    assert plan.orders[0].finished == 53  # the upload alone waits


class Drain(Behaviour):
    """15 ns of computing empty it; it is charged 100 ns later."""

    def play(self, device):
        left = 15
        while True:
            working = device.stage == "compute"
            began = device.now
            yield device.env.any_of([device.changed()] + ([device.timeout(left)] if working else []))
            left -= (device.now - began) if working else 0
            if not left:
                device.off()
                yield device.timeout(100)
                left = 15
                device.on()


def test_what_a_device_does_depends_on_what_it_is_asked():
    """Computes from 5; empty at 20, in the middle of the second step, on at 120; empty again at 135, the end of the
    third, and off for the upload until 235."""
    (plan,), _ = play([{"per_sample": 10}], Drain)
    (order,) = plan.orders
    assert (order.computed, order.finished) == (135, 238)
    (plan,), _ = play([{"per_sample": 10}], Drain, steps=1)
    assert plan.orders[0].finished == 18  # less work: never empty


class Late(Behaviour):
    """Off at first, on from 30."""

    def play(self, device):
        device.off()
        yield device.timeout(30)
        device.on()


@pytest.mark.parametrize("first", [0, 10])
def test_a_device_that_is_off_at_first_is_not_asked_before_it_comes(first):
    """The others settle before a cohort is drawn at time 0 as at any other."""
    (plan,), _ = play([{"per_sample": 10}], Late, replace(RULES, first=first))
    assert plan.opened == 30
    assert plan.orders[0].outcome is Outcome.COMPLETE


def test_devices_take_turns_at_an_access_point():
    """Each download takes 5 ns, one after the other; each then computes 10 ns and uploads 3 ns when it is its turn."""
    (plan,), _ = play([{"per_sample": 10}] * 3, lambda: AccessPoint(devices=3), steps=1)
    assert [order.downloaded for order in plan.orders] == [5, 10, 15]
    assert [order.finished for order in plan.orders] == [18, 23, 28]
    (plan,), _ = play([{"per_sample": 10}] * 4, lambda: AccessPoint(devices=2), steps=1)
    assert [order.downloaded for order in plan.orders] == [5, 10, 5, 10]  # two access points


@pytest.mark.parametrize("aware", [True, False])
def test_who_waits_too_long_for_a_line_is_late_and_who_was_off_meanwhile_offline(aware):
    """The others download until 11, when the third goes off: the first uploads from then on, until 14, behind 13."""

    class Elevator(AccessPoint):
        def play(self, device):
            yield device.timeout(11)
            if device.number == 2:
                device.off()
                yield device.timeout(1)
                device.on()

    devices = [{"per_sample": 1, "deadline_aware": aware}] * 3
    (plan,), _ = play(devices, lambda: Elevator(devices=3), replace(RULES, deadline=13), steps=1)
    assert [order.outcome for order in plan.orders] == [Outcome.LATE, Outcome.LATE, Outcome.OFFLINE]


class Visitor(Behaviour):
    """Arrives at 10, departs at 60."""

    arrives = True

    def play(self, device):
        yield device.timeout(10)
        device.arrive()
        yield device.timeout(50)
        device.depart()


def test_devices_arrive_and_depart():
    devices = [{"per_sample": 10, "arrive": 2**62}]
    plans, why = play(devices, Visitor, replace(RULES, rounds=9))
    assert [(p.opened, p.closed, p.arrived, p.departed) for p in plans] == [(10, 48, (0,), ()), (48, 60, (), (0,))]
    assert [p.moves for p in plans] == [((10,), 1), ((60,), 0)]
    assert plans[1].orders[0].outcome is Outcome.DEPARTED
    assert why == "nobody can be asked any more"


def test_a_device_that_goes_off_for_good_is_not_waited_for():
    class Lost(Behaviour):
        def play(self, device):
            yield device.timeout(20)
            device.off()

    plans, why = play([{"per_sample": 10}], Lost, replace(RULES, rounds=9))
    assert [order.outcome for plan in plans for order in plan.orders] == [Outcome.OFFLINE]
    assert why == "nobody can be asked any more"


def test_a_behaviour_that_never_waits_is_refused():
    class Restless(Behaviour):
        def play(self, device):
            while True:
                yield device.timeout(0)

    with pytest.raises(ScenarioError, match="goes on for ever at 0 ns"):
        play([{"per_sample": 10}], Restless)


def on_time(make, days=2, devices=4):
    """Return what share of each of `days` each of some idle devices is on."""
    people = replace(population([{}] * devices), behaving=[BehavingGroup(0, devices, make)])
    works = [workload(1, 1, epochs=None, steps=1)] * devices
    world = EventWorld(people, planner(people, 1, 5, 3, 0), works, 1, np.zeros(devices, bool))
    on = np.zeros((days, devices))
    for minute in range(days * 24 * 60):
        world.env.run(until=minute * 60 * SECOND + 1)
        on[minute // (24 * 60)] += [world.devices[k].on for k in range(devices)]
    return on / (24 * 60)


def spans_on(make, days=2):
    """Return from when until when one idle device was on, in s."""
    people = replace(population([{}]), behaving=[BehavingGroup(0, 1, make)])
    work = [workload(1, 1, epochs=None, steps=1)]
    world = EventWorld(people, planner(people, 1, 5, 3, 0), work, 1, np.zeros(1, bool))
    world.env.run(until=days * 24 * HOUR)
    return [(on / SECOND, off / SECOND) for on, off in world.spans(0, 0)]


def test_users_sleep_from_one_hour_until_another():
    *before, last = spans_on(lambda: Diurnal(on="22h", off=7, spread=0))
    assert before == [(0, 7 * 3600), (22 * 3600, 31 * 3600)]
    assert last[0] == 46 * 3600


@pytest.mark.parametrize(("hours", "first"), [((0, 7), 0), ((22, 0), 22), ((23.5, 7), 0), ((7, 23.5), 7)])
def test_what_begins_at_midnight_begins_with_the_run(hours, first):
    """A device was off, or on, for the first nanosecond, at which a cohort is drawn."""
    (plan,), _ = play([{"per_sample": 10}], lambda: Diurnal(*hours, spread=0))
    assert plan.opened == first * HOUR


def test_users_sleep():
    shares = on_time(lambda: Diurnal(on="22h", off=7, spread="60min"), days=3)
    assert ((shares > 4 / 24) & (shares < 14 / 24)).all()
    assert len(np.unique(shares)) > 3  # each day is another


def test_a_battery_that_is_never_charged_runs_down_by_what_the_device_does():
    """40 J, off below 10 J: at 1 W idle it is off after at most 30 s; at rest (0 W) never."""
    idle = on_time(lambda: Battery(capacity="40 J", idle=1.0, charging=0.0, low=0.25), days=1)
    assert (idle <= 1 / (24 * 60)).all()
    assert (on_time(lambda: Battery(capacity="40 J", idle=0.0, charging=0.0), days=1) == 1.0).all()


def test_a_battery_recovers_when_it_is_plugged_in():
    """Full at 7 h, which is 5,760 J above `low`: at 1 W it is off 1.6 h later. Off it consumes nothing: from 22 h on,
    10 W charge the 720 J from `low` to `resume` in 72 s."""
    *before, _ = spans_on(lambda: Battery(capacity="7.2 kJ", idle=1.0, charging=10.0, low=0.2, resume=0.3))
    assert before == [pytest.approx((0, 30_960)), pytest.approx((79_272, 117_360))]


PEOPLE = """
from fedactors.clock.behaviours.base import Behaviour

class Commuter(Behaviour):
    def __init__(self, minutes=1):
        self.minutes = minutes

    def play(self, device):
        while True:
            yield device.timeout(int(device.random.integers(20, 200)) * 10**9)
            device.off()
            yield device.timeout(f"{self.minutes} min")
            device.on()

class Mute(Behaviour):
    def play(self, device):
        return None

class Broken(Behaviour):
    def play(self, device):
        yield device.timeout("3 parsecs")

def function():
    pass
"""


def scenario(tmp_path, behaviour="people.py:Commuter", **arguments):
    (tmp_path / "people.py").write_text(textwrap.dedent(PEOPLE))
    availability = {"name": "process", "behaviour": behaviour, "arguments": arguments}
    data = {
        "name": "commuters",
        "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
        "population": [
            {"name": "commuters", "count": 6, "availability": availability, "compute": {"per_sample": "100ms"}},
            {"name": "others", "count": 3, "compute": {"per_sample": "50ms"}},
        ],
        "server": {
            "rounds": 6,
            "cohort": 5,
            "deadline": "90s",
            "algorithm": "fedavg",
            "local": {"epochs": 5, "batch": 20},
            "schedule": {"name": "constant", "lr": 0.1},
        },
    }
    return Scenario.from_data(data, "scenario.yaml", folder=tmp_path)


def test_a_user_writes_a_behaviour_in_a_file(tmp_path):
    made = scenario(tmp_path)
    plans = list(prepare(made).clock())
    assert plans == list(prepare(made).clock())
    outcomes = {order.outcome for plan in plans for order in plan.orders if order.client < 6}
    assert Outcome.PARTIAL in outcomes
    assert "people.py" in made.code  # kept in the run folder


@pytest.mark.parametrize(
    ("behaviour", "arguments", "message"),
    [
        ("people.py:Commuter", {"hours": 1}, "unexpected keyword argument 'hours'"),
        ("people.py:Mute", {}, "has no generator"),
        ("people.py:function", {}, "is no behaviour"),
        ("people.py:Nobody", {}, "Nobody"),
        ("nothing.py:Commuter", {}, "no file"),
        ("batery", {}, "accepted"),
        ("battery", {"capacity": "4 parsecs"}, "parsecs"),
        ("access_point", {"devices": 0}, "at least 1"),
        ("diurnal", {"on": 30}, "different hours"),
        ("diurnal", {"on": "8 parsecs"}, "parsecs"),
    ],
)
def test_wrong_behaviours_are_refused_in_one_message(tmp_path, behaviour, arguments, message):
    with pytest.raises(ScenarioError, match=r"(?s)" + message) as caught:
        prepare(scenario(tmp_path, behaviour, **arguments))
    assert str(caught.value).count("\n") == 0
