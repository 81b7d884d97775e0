"""Tiers of clients that take equally long, and the probabilities of the tiers, worked by hand."""

import numpy as np
import pytest
from pydantic import ValidationError

from fedactors.clock.selections.base import Clients, Loss
from fedactors.clock.selections.tifl import Tiers, TiFL
from fedactors.plan import Orders, Plan
from fedactors.streams import Purpose, stream

PLAN = Plan(0, 0, 1, 1, Orders.of(()), 1)
CLIENTS = Clients(np.ones(6, int), np.array([60, 10, 50, 20, 40, 30]))  # tiers {1, 3}, {5, 4}, {2, 0}
EVERYBODY = np.arange(6)


def lot(round):
    return stream(1, Purpose.COHORT, 0, round)


def cohorts(selector, rounds, count=2, candidates=EVERYBODY):
    return [tuple(sorted(selector.choose(candidates, count, r, lot(r)).tolist())) for r in range(rounds)]


def test_clients_of_one_tier_are_asked_together():
    found = cohorts(Tiers(tiers=3).start(CLIENTS), 300)
    counts = [found.count(tier) for tier in ((1, 3), (4, 5), (0, 2))]
    assert sum(counts) == 300
    assert min(counts) > 70, "each in a third of the rounds: 100, give or take four standard errors of 8"


def test_tiers_are_drawn_as_often_as_they_say():
    found = cohorts(Tiers(tiers=3, probabilities=(0.7, 0.3, 0.0)).start(CLIENTS), 400)
    assert found.count((0, 2)) == 0
    assert abs(found.count((1, 3)) - 280) < 4 * (400 * 0.7 * 0.3) ** 0.5


def test_a_tier_with_too_few_is_filled_up_from_the_next():
    """The fast tier, of which client 1 is away: 3, and one of the middle one."""
    selector = Tiers(tiers=3, probabilities=(1.0, 0.0, 0.0)).start(CLIENTS)
    assert set(cohorts(selector, 20, candidates=np.array([0, 2, 3, 4, 5]))) == {(3, 4), (3, 5)}
    assert cohorts(selector, 1, candidates=np.array([0, 2]))[0] == (0, 2), "nobody of it is there"


def test_probabilities_follow_the_losses():
    """Losses .5, 1 and 2 of the tiers, of which none falls: with n = 3 and D = 6, 1/6, 2/6 and 3/6."""
    selector = TiFL(tiers=3, interval=2).start(CLIENTS)
    losses = {1: 0.5, 3: 0.5, 4: 1.0, 5: 1.0, 0: 2.0, 2: 2.0}
    selector.learned(PLAN, {client: Loss(loss, 0.0) for client, loss in losses.items()})
    cohorts(selector, 2)
    assert selector._odds == pytest.approx([1 / 3, 1 / 3, 1 / 3]), "nothing to compare with yet"
    cohorts(selector, 1)
    assert selector._odds == pytest.approx([1 / 6, 2 / 6, 3 / 6])


def test_a_tier_that_still_learns_changes_nothing():
    selector = TiFL(tiers=3, interval=1).start(CLIENTS)
    for value in (3.0, 2.0, 1.0):
        selector.learned(PLAN, {client: Loss(value * (1 + client), 0.0) for client in range(6)})
        cohorts(selector, 1)
    assert selector._odds == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def test_tiers_without_credits_are_not_drawn():
    """Two credits each: after six rounds each tier was drawn twice. Of n = 2 tiers that have some left, D = 3."""
    selector = TiFL(tiers=3, interval=1000, credits=2).start(CLIENTS)
    found = cohorts(selector, 6)
    assert sorted(found.count(tier) for tier in ((1, 3), (4, 5), (0, 2))) == [2, 2, 2]
    selector._credits = np.array([0.0, 5.0, 5.0])
    selector._course.append(np.array([9.0, 1.0, 2.0]))
    selector._change()
    assert selector._odds == pytest.approx([0, 1 / 3, 2 / 3])


def test_probabilities_that_fit_no_tiers_are_refused():
    with pytest.raises(ValidationError, match="one for each of the 3 tiers, 1 in all"):
        Tiers(tiers=3, probabilities=(0.5, 0.5))
