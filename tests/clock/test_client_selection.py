"""Whom the server asks: worked by hand, and with the odds that each policy promises."""

from dataclasses import replace

import numpy as np
import pytest

from fedactors import Scenario, registry
from fedactors.clock.selections.base import (
    Clients,
    Loss,
    RoundRobinSelection,
    SampleSelection,
    UniformSelector,
    choice_of,
)
from fedactors.clock.selections.oort import Oort
from fedactors.clock.selections.power_of_choice import PowerOfChoice
from fedactors.errors import ScenarioError
from fedactors.plan import Order, Orders, Outcome, Plan
from fedactors.simulation.prepare import prepare
from fedactors.streams import Purpose, stream

PLAN = Plan(0, 0, 1, 1, Orders.of(()), 1)
TEN = np.arange(10)
CLIENTS = Clients(np.arange(1, 11), np.full(10, 1_000))
OPTIONS = {"power-of-choice": {"candidates": 6}}


def lot(round):
    return stream(1, Purpose.COHORT, 0, round)


def drawn(selector, count, rounds, candidates=TEN):
    return np.concatenate([selector.choose(candidates, count, r, lot(r)) for r in range(rounds)])


@pytest.mark.parametrize("name", registry.names("selection"))
@pytest.mark.parametrize("count", [1, 4, 10, 12])
def test_every_policy_asks_as_many_as_it_can_of_those_it_may(name, count):
    selector = registry.lookup("selection", name)(**OPTIONS.get(name, {})).start(CLIENTS)
    for round in range(30):
        candidates = np.flatnonzero(lot(round).random(10) < 0.7)
        chosen = selector.choose(candidates, count, round, lot(100 + round)) if len(candidates) else candidates
        assert len(set(chosen.tolist())) == len(chosen) == min(count, len(candidates))
        assert set(chosen.tolist()) <= set(candidates.tolist())
        if registry.lookup("selection", name).steers:
            selector.learned(PLAN, {int(client): Loss(1.0, 2.0 + client) for client in chosen[::2]})


class Odd(UniformSelector):
    """A selection of the user's that returns what it is given."""

    def __init__(self, found):
        self.found = found

    def choose(self, candidates, count, version, random):
        return self.found


@pytest.mark.parametrize("found", [[4, 2], np.array([4, 2], np.int32), np.uint8([2, 4, 8])])
def test_a_choice_is_any_integers_in_any_order(found):
    chosen = choice_of(Odd(found), np.arange(0, 10, 2), 3, 0, lot(0))
    assert chosen.tolist() == sorted(np.asarray(found).tolist())
    assert chosen.dtype == np.int64


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([0, 999], "999, which cannot be asked now"),
        ([0, 3], "3, which cannot be asked now"),
        ([-1], "-1, which cannot be asked now"),
        ([4, 0, 4], "4 more than once"),
        (TEN[::2], "5 clients"),
        ([0.0, 2.0], r"\[0.0, 2.0\]"),
        ([True, False], r"\[True, False\]"),
        (None, "None"),
        ([], "nobody"),
        (TEN[:0], "nobody"),
        ([[0, 2]], r"\[\[0, 2\]\]"),
    ],
)
def test_a_choice_of_others_than_the_candidates_is_refused(found, said):
    with pytest.raises(ScenarioError, match=rf"test_client_selection.py, Odd.choose in round 3: returned {said} \(acc"):
        choice_of(Odd(found), TEN[::2], 3, 2, lot(0))


class Shuffling(UniformSelector):
    """A selection of the user's that shuffles the candidates where they are."""

    def choose(self, candidates, count, version, random):
        random.shuffle(candidates)
        return candidates[:count]


def test_candidates_may_be_shuffled():
    chosen = choice_of(Shuffling(), TEN, 9, 1, lot(0))
    assert len(set(chosen.tolist())) == 9
    assert TEN.tolist() == list(range(10))


def test_odds_follow_samples():
    """With n = 1..10 and one draw, client k comes up in k/55 of 4,000 rounds, give or take four standard errors."""
    times = np.bincount(drawn(SampleSelection().start(CLIENTS), 1, 4_000), minlength=10)
    expected = 4_000 * CLIENTS.samples / 55
    assert (abs(times - expected) < 4 * np.sqrt(expected)).all()


def test_turns_go_round():
    selector = RoundRobinSelection().start(CLIENTS)
    assert drawn(selector, 4, 3).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    assert selector.choose(np.array([0, 1, 7]), 2, 3, lot(3)).tolist() == [7, 0], "those away are passed over"


def test_power_of_choice_takes_the_highest_losses_of_those_drawn():
    """d = all ten: those never asked come first, then the highest last losses."""
    selector = PowerOfChoice(candidates=10).start(CLIENTS)
    selector.learned(PLAN, {client: Loss(float(client), 0.0) for client in range(9)})
    assert selector.choose(TEN, 3, 0, lot(0)).tolist() == [9, 8, 7]
    selector.learned(PLAN, {9: Loss(0.5, 0.0), 2: Loss(99.0, 0.0)})
    assert selector.choose(TEN, 3, 0, lot(0)).tolist() == [2, 8, 7]


def test_power_of_choice_with_as_many_candidates_as_asked_draws_by_samples():
    chosen = drawn(PowerOfChoice(candidates=1).start(CLIENTS), 2, 50).tolist()
    assert sorted(chosen) == sorted(drawn(SampleSelection().start(CLIENTS), 2, 50).tolist())


def test_power_of_choice_draws_among_equal_losses():
    """At first all are alike, whether all are drawn or not."""
    for candidates in (6, 10):
        selector = PowerOfChoice(candidates=candidates).start(CLIENTS._replace(samples=np.ones(10, int)))
        assert set(drawn(selector, 4, 20)) == set(range(10))


def test_whoever_never_answers_counts_as_the_mean():
    """Clients 8 and 9 were asked and not heard, so they count as (0 + ... + 7) / 8 = 3.5: behind 4, before 3."""
    selector = PowerOfChoice(candidates=10).start(CLIENTS)
    heard = {client: Loss(float(client), 0.0) for client in range(8)}
    asked = [Order(k, 0, 1, 0, Outcome.LATE, 0, 0, 0, 0, 0, 0) for k in (8, 9)]
    selector.learned(PLAN, heard)
    assert set(selector.choose(TEN, 2, 1, lot(1)).tolist()) == {8, 9}
    selector.learned(replace(PLAN, orders=Orders.of(asked)), {})
    assert selector.choose(TEN, 4, 2, lot(2)).tolist() == [7, 6, 5, 4]
    assert set(selector.choose(TEN, 7, 2, lot(2)).tolist()[4:]) == {8, 9, 3}


def test_a_few_late_clients_do_not_stop_power_of_choice():
    """The four slow ones are never heard. From the second round on others are, in every one."""
    data = {
        "name": "late",
        "task": {"dataset": "synthetic", "model": "logistic", "partition": "natural"},
        "population": [
            {"name": "slow", "count": 4, "compute": {"per_sample": "60s"}, "deadline_aware": False},
            {"name": "fast", "count": 16},
        ],
        "server": {"rounds": 12, "cohort": 4, "deadline": "10s", "local": {"steps": 2, "batch": 10},
                   "selection": {"name": "power-of-choice", "candidates": 20}},
    }  # fmt: skip
    clock = prepare(Scenario.from_data(data, "late.yaml", folder=None)).clock()
    heard = []
    for plan in clock:
        clock.feedback(plan.version, dict.fromkeys(plan.heard().client.tolist(), Loss(1.0, 1.0)))
        heard.append(len(plan.heard()))
    assert min(heard[1:]) >= 1
    assert sum(heard) > 30


def test_oort_by_hand():
    """Of four known clients, all utility and no exploration, one is asked.

    U = |B| sqrt(square) = (1 * 2, 2 * 1, 3 * 3, 4 * 0) = (2, 2, 9, 0), from 0 to 1 (2/9, 2/9, 1, 0). At the second
    selection the bonus is sqrt(0.1 log 2 / 1) = 0.263 for all. Client 2 is three times as slow as the others: 1.263 /
    3^2 = 0.140. The best are clients 0 and 1, 0.485 each; client 3, of 0.263, is below 95 % of that.
    """
    clients = Clients(np.array([1, 2, 3, 4]), np.array([100, 100, 300, 100]))
    found = set()
    for round in range(30):
        selector = Oort(exploration=0.0, least_exploration=0.0, preferred=50.0).start(clients)
        selector.choose(np.arange(4), 4, 0, lot(0))
        squares = (4.0, 1.0, 9.0, 0.0)
        selector.learned(PLAN, {client: Loss(0.0, square) for client, square in enumerate(squares)})
        found |= set(selector.choose(np.arange(4), 1, 1, lot(round)).tolist())
    assert found == {0, 1}


def asked_by_oort(unit, rounds=400):
    """Return how often each of 100 known clients is asked, five at a time: 20 of loss 2, 60 of 1.5, 20 of 1."""
    losses = unit * np.repeat([2.0, 1.5, 1.0], [20, 60, 20])
    selector = Oort(exploration=0.0, least_exploration=0.0).start(Clients(np.full(100, 50), np.full(100, 10)))
    everybody = chosen = np.arange(100)
    times = np.zeros(100, int)
    for round in range(rounds):
        selector.learned(PLAN, {int(client): Loss(0.0, losses[client] ** 2) for client in chosen})
        chosen = selector.choose(everybody, 5, round, lot(round))
        times[chosen] += 1
    return times


def test_oort_asks_those_again_of_whom_it_has_not_heard_for_long():
    """From 0 to 1 the utilities are 1, 0.5 and 0. Whoever was just heard has hardly more than that: the best have 1.

    At selection 12, a client of 0.5 that was heard after the first one alone has 0.5 + sqrt(0.1 log 12 / 1) = 1, too.
    A client of 0 would have as much at selection e^10. Whatever the unit of losses, choices are the same.
    """
    times = asked_by_oort(1.0)
    assert times[:20].min() > 20
    assert times[20:80].min() >= 1
    assert times[80:].max() == 0
    assert (asked_by_oort(1000.0) == times).all()


def test_oort_cuts_off_outliers():
    """Of the utilities 1, 2, ..., 99 and 10^6 the 96th is the most that counts: 96 to 99 and 10^6 are alike.

    At the first selection there is no bonus. Admitted are 95 % of that: from 92 on, nine clients.
    """
    squares = np.append(np.arange(1.0, 100.0), 1e6) ** 2
    losses = dict(enumerate(Loss(0.0, square) for square in squares.tolist()))
    found = []
    for round in range(200):
        selector = Oort(exploration=0.0, least_exploration=0.0).start(Clients(np.ones(100, int), np.full(100, 10)))
        selector.learned(PLAN, losses)
        found += selector.choose(np.arange(100), 1, round, lot(round)).tolist()
    assert set(found) == set(range(91, 100))
    assert found.count(99) < 50


def test_oort_explores_the_fast_first_and_less_with_time():
    clients = Clients(np.ones(1000, int), np.where(np.arange(1000) < 500, 10, 1000))
    selector = Oort().start(clients)
    first = selector.choose(np.arange(1000), 100, 0, lot(0))
    assert (first < 500).mean() > 0.9
    share = []
    for round in range(1, 40):
        known = ~np.isnan(selector._utility)
        chosen = selector.choose(np.arange(1000), 10, round, lot(round))
        share.append((~known[chosen]).mean())
        selector.learned(PLAN, {int(client): Loss(1.0, 1.0) for client in chosen})
    assert np.mean(share[:5]) > np.mean(share[-5:]) >= 0.2


def test_oorts_pacer_allows_for_slower_clients_when_utility_falls():
    selector = Oort(window=2).start(CLIENTS)
    for worth in (9.0, 9.0, 1.0, 1.0):
        selector.choose(TEN, 3, 0, lot(0))
        selector.learned(PLAN, {0: Loss(worth, worth)})
    selector.choose(TEN, 3, 0, lot(0))
    assert selector._percentile == 35.0
    for _ in range(5):
        selector.choose(TEN, 1, 4, lot(0))
    assert selector._percentile == 35.0, "once for each window, however often it chooses"


def test_oort_explores_where_few_are_asked_at_a_time():
    """Of 100 alike an asynchronous server asks one at a time; of 400, about a fifth are new, until there are none."""
    clients = Clients(np.ones(100, int), np.full(100, 1_000))
    selector = Oort().start(clients)
    asked = set()
    for version in range(800):
        chosen = selector.choose(np.arange(100), 1, version, lot(version)).tolist()
        selector.learned(PLAN, {client: Loss(1.0, 1.0) for client in chosen})
        asked |= set(chosen)
    assert len(asked) == 100
