"""The objective set from Plan to Plan: who is in it, at which rate, with which weights."""

from types import SimpleNamespace

import numpy as np
import pytest

from fedactors.algorithms.members.objective import FastReboot, Vanilla
from fedactors.algorithms.participation import SampleWeights
from fedactors.optim.schedule import StaircaseRate
from fedactors.plan import NEVER, Order, Orders, Outcome, Plan
from fedactors.scenario.model import Scenario
from fedactors.simulation.objective_state import Objective, Verdict, settled
from fedactors.simulation.prepare import prepare
from fedactors.simulation.tasks import task_of
from fedactors.workload import WorkloadTable, workload

LENGTH = 100  # ticks of a round


class Story:
    """Rounds of 100 ticks over devices that arrive and depart; everybody there is asked and heard, unless told."""

    def __init__(self, moves, policy=None, sizes=None, cohort="all"):
        count = len(moves)
        arrive, depart = (np.array(column, np.int64) for column in zip(*moves, strict=True))
        self.people = people = _People(arrive, depart)
        held = np.array(sizes or [10] * count, np.int64)
        server = SimpleNamespace(membership=policy or Vanilla(), cohort=cohort, participation=SampleWeights())
        table = WorkloadTable([workload(samples, 10, epochs=1, steps=None) for samples in held.tolist()])
        scenario = SimpleNamespace(server=server)
        self.objective = Objective(
            SimpleNamespace(scenario=scenario, population=people, held=held, workload_table=table)
        )
        self.version, self.now, self.told = 0, 0, -1
        self.decide = settled(server.membership.departures)

    def round(self, lost=(), wait=0):
        """Play a round; clients in `lost` are not heard. Returns the state of the objective."""
        opened = self.now + wait
        closed = opened + LENGTH
        people = self.people
        asked = np.flatnonzero((people.arrive <= opened) & (people.depart > opened)).tolist()
        orders = Orders.of(
            _order(k, self.version, opened, Outcome.DEPARTED if k in lost else Outcome.COMPLETE) for k in asked
        )
        moved = [
            tuple(np.flatnonzero((column > max(self.told, 0)) & (column <= closed)).tolist())
            for column in (people.arrive, people.depart)
        ]
        plan = Plan(self.version, opened, closed, closed, orders, self.version + 1, *moved)
        self.version, self.now, self.told = self.version + 1, closed, closed
        return self.objective.at(plan, self.decide)


class _People:
    def __init__(self, arrive, depart):
        self.arrive, self.depart = arrive, depart

    def __len__(self):
        return len(self.arrive)


def _order(client, version, opened, outcome):
    return Order(client, version, 5, 5, outcome, opened, opened, opened, opened, 0, 0)


def inside(objective_state):
    return np.flatnonzero(objective_state.audience).tolist()


STAYS = (0, NEVER)


def test_an_arrival_counts_from_the_next_round_with_the_first_rate_and_a_boost_that_decays():
    """I-R10: rate lr0 in the first round after a shift; boosts 3, 3/2, 11/9, 9/8."""
    story = Story([STAYS, STAYS, (150, NEVER)], FastReboot())
    seen = [story.round() for _ in range(6)]
    assert [inside(s) for s in seen] == [[0, 1], [0, 1], *[[0, 1, 2]] * 4]
    assert [s.round for s in seen] == [1, 2, 1, 2, 3, 4]
    assert [s.factors.get(2) for s in seen[2:]] == pytest.approx([3, 3 / 2, 11 / 9, 9 / 8])
    assert [s.members for s in seen] == [(2, 20), (2, 20), *[(3, 30)] * 4]
    (move,) = seen[2].moves
    assert (move.client, move.event, move.after) == (2, "arrival", 2)
    assert [StaircaseRate(lr=0.3).rate(s.round) for s in seen[:3]] == [0.3, 0.15, 0.3]


def test_several_arrivals_each_have_their_own_boost_and_each_starts_the_rate_anew():
    story = Story([STAYS, (100, NEVER), (250, NEVER)], FastReboot(boost=5.0, decay=1.0))
    seen = [story.round() for _ in range(5)]
    assert [s.round for s in seen] == [1, 1, 2, 1, 2]
    assert [s.factors for s in seen] == [{}, {1: 5}, {1: 3}, {1: 1 + 4 / 3, 2: 5}, {1: 2, 2: 3}]


def test_vanilla_and_a_boost_of_one_raise_nothing():
    for policy in (Vanilla(), FastReboot(boost=1.0)):
        story = Story([STAYS, (100, NEVER)], policy)
        assert [story.round().factors for _ in range(4)] == [{}] * 4


def test_who_is_there_when_the_first_round_opens_did_not_arrive():
    story = Story([STAYS, (30, NEVER), (0, 20)], FastReboot())
    seen = [story.round(wait=40), story.round()]
    assert [(inside(s), s.round, s.factors, s.moves) for s in seen] == [([0, 1], 1, {}, ()), ([0, 1], 2, {}, ())]


def test_a_departure_whose_update_was_heard_counts_from_the_next_round():
    """tau_0 is the round of departure; survivors keep their ratios and shares sum to 1 (I-R10)."""
    story = Story([STAYS, STAYS, (0, 199)], sizes=[10, 30, 60])
    seen = [story.round() for _ in range(4)]
    assert [inside(s) for s in seen] == [[0, 1, 2], [0, 1, 2], [0, 1], [0, 1]]
    assert [s.round for s in seen] == [1, 2, 1, 2]
    assert seen[2].moves[0].after == 2
    assert [story.objective.share(k) for k in (0, 1)] == [0.25, 0.75]


def test_a_departure_whose_work_was_lost_is_out_of_that_aggregate_and_of_the_next_rate():
    """tau_0 is the round before; the rate of the round in progress had been sent."""
    story = Story([STAYS, STAYS, (0, 150)])
    seen = [story.round(), story.round(lost=[2]), story.round(), story.round()]
    assert [inside(s) for s in seen] == [[0, 1, 2], [0, 1], [0, 1], [0, 1]]
    assert [s.round for s in seen] == [1, 2, 1, 2]
    assert seen[1].moves[0].after == 1


def test_a_departure_between_rounds_counts_from_the_next():
    story = Story([STAYS, STAYS, (0, 120)])
    seen = [story.round(), story.round(wait=50), story.round()]
    assert [(inside(s), s.round) for s in seen] == [([0, 1, 2], 1), ([0, 1], 1), ([0, 1], 2)]


def test_an_arrival_and_a_lost_departure_in_one_round_both_start_the_rate_anew():
    story = Story([STAYS, (100, NEVER), (0, 150)])
    seen = [story.round(), story.round(lost=[2]), story.round(), story.round()]
    assert [s.round for s in seen] == [1, 1, 1, 2]


def test_included_devices_count_as_inactive_for_ever():
    story = Story([STAYS, STAYS, (0, 150)], Vanilla(departures="include"))
    seen = [story.round(), story.round(lost=[2]), story.round()]
    assert [(inside(s), s.round, s.members) for s in seen] == [([0, 1, 2], t, (3, 30)) for t in (1, 2, 3)]
    assert seen[1].moves[0].decision == "include"
    assert [s.changed("departure", "exclude") for s in seen] == [(), (), ()]


def test_a_cohort_by_lot_stands_for_those_who_are_there():
    """Two of three members are there and asked, and weigh what they weigh: 40 of 100; the third weighs 60."""
    include = Story([STAYS, STAYS, (0, 99)], Vanilla(departures="include"), [10, 30, 60], cohort=2)
    exclude = Story([STAYS, STAYS, (0, 99)], Vanilla(), [10, 30, 60], cohort=2)
    for story, members in ((include, (3, 100)), (exclude, (2, 40))):
        story.round()
        assert story.round().members == pytest.approx(members)


def test_decisions_are_asked_for_one_after_the_other():
    story, asked = Story([STAYS, (0, 100), (0, 100), STAYS], Vanilla(departures="auto")), []

    def decide(objective, client, done):
        asked.append((client, done, objective.size))
        return Verdict(exclude=client == 1, numbers={"why": client})

    story.decide = decide
    story.round()
    objective_state = story.round()
    assert asked == [(1, 1, 4), (2, 1, 3)]
    assert inside(objective_state) == [0, 2, 3]
    assert [move.numbers for move in objective_state.moves] == [{"why": 1}, {"why": 2}]


def test_a_guest_who_comes_and_goes_between_two_rounds_was_never_a_member():
    story = Story([STAYS, (120, 140), (130, 250)])
    seen = [story.round(), story.round(), story.round(lost=[2]), story.round()]
    assert [inside(s) for s in seen] == [[0], [0], [0], [0]]
    assert seen[2].moves[0].event == "arrival"
    assert seen[2].moves[1].decision == "exclude"


def test_the_rate_runs_on_if_the_scenario_says_so():
    story = Story([STAYS, (100, NEVER), (0, 250)], Vanilla(reset_rate=False))
    assert [story.round().round for _ in range(5)] == [1, 2, 3, 4, 5]


def test_a_copy_goes_its_own_way():
    story = Story([STAYS, STAYS, (0, 150)])
    story.round()
    other = story.objective.fork()
    story.round(lost=[2])
    assert (other.size, story.objective.size) == (3, 2)


def test_the_servers_schedule_runs_on_when_the_objective_shifts():
    """Ruan et al. begin the devices' rate anew. Theirs is the first one in the fourth round, after a shift."""
    data = {
        "name": "rates",
        "task": {"dataset": "synthetic", "model": "logistic", "partition": "natural"},
        "population": [{"name": "devices", "count": 3}],
        "server": {
            "rounds": 5,
            "membership": "vanilla",
            "schedule": {"name": "staircase", "lr": 0.3},
            "server_schedule": {"name": "exponential", "lr": 1.0, "gamma": 0.5},
        },
    }
    prepared = prepare(Scenario.from_data(data, "rates.yaml"))
    objective = Objective(prepared)
    plans = list(prepared.clock())
    states = [objective.at(plan, settled("exclude")) for plan in plans]
    facts = task_of(plans[3], prepared, "cpu", last=False, objective_state=states[3]._replace(round=1)).facts
    assert facts.lr == 0.3
    assert facts.server_lr == pytest.approx(0.5**3)
