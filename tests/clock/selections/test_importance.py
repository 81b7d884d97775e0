"""Importance sampling: each client comes up with exactly its probability, and weights give it its share on average."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from fedactors import Scenario
from fedactors.clock.selections.importance import ImportanceSelector, inclusion
from fedactors.errors import ScenarioError
from fedactors.plan import Orders, Plan
from fedactors.simulation.prepare import prepare
from fedactors.simulation.tasks import weights_of


def test_probabilities_by_hand():
    """Odds 1, 2, 3 and 4 for two of four: in proportion 0.2, 0.4, 0.6, 0.8.

    For three: 4 would get 1.2, so it is asked always, and 1, 2, 3 share two: 1/3, 2/3, 1.
    """
    odds = np.array([1.0, 2.0, 3.0, 4.0])
    assert inclusion(odds, 2) == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert inclusion(odds, 3) == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert inclusion(odds, 4).tolist() == [1, 1, 1, 1]
    assert inclusion(np.array([1.0, 1e9, 1.0]), 2) == pytest.approx([0.5, 1, 0.5])


class Given:
    """A random generator that gives one order and one number."""

    def __init__(self, order, u):
        self.order, self.u = order, u

    def permutation(self, values):
        return values[list(self.order)]

    def random(self):
        return self.u


def cohorts(odds, count):
    """Yield (probability, cohort) of every draw: all orders, and all u between the ends at which the cohort changes."""
    selector, everybody = ImportanceSelector(odds), np.arange(len(odds))
    chances = inclusion(odds, count)
    rest = np.flatnonzero(chances < 1)
    orders = list(permutations(range(len(rest))))
    for order in orders:
        ends = np.unique(np.concatenate([[0.0, 1.0], np.cumsum(chances[rest[list(order)]]) % 1]))
        for low, high in pairwise(ends):
            chosen = selector.choose(everybody, count, 0, Given(order, (low + high) / 2))
            yield (high - low) / len(orders), sorted(chosen.tolist())


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_comes_up_with_its_probability(count):
    odds = np.array([35.0, 28.0, 45.0, 12.0, 11.0])
    found = np.zeros(5)
    for probability, cohort in cohorts(odds, count):
        assert len(set(cohort)) == count
        found[cohort] += probability
    assert found == pytest.approx(inclusion(odds, count))


def prepared(scheme="B", weights="unbiased", **server):
    data = {
        "name": "shares",
        "task": {"dataset": {"name": "synthetic"}, "model": "logistic", "partition": "natural"},
        "population": [{"name": "phones", "count": 3}, {"name": "kiosks", "count": 2}],
        "server": {
            "rounds": 1,
            "cohort": 2,
            "among": "members",
            "selection": {"name": "importance", "samples": 0.5, "odds": {"kiosks": 3}},
            "participation": {"name": scheme, "weights": weights},
            "local": {"epochs": 2, "batch": 10},
            "schedule": {"name": "constant", "lr": 0.1},
            **server,
        },
    }
    return prepare(Scenario.from_data(data, "shares.yaml"))


@pytest.mark.parametrize("scheme", ["B", "C"])
@pytest.mark.parametrize("cohort", [1, 2, 4, 5])
def test_weights_give_each_client_its_share_on_average(scheme, cohort):
    """Over all draws with their probabilities, where every device finishes; odds sqrt(n_k), of kiosks three times."""
    made = prepared(scheme, cohort=cohort)
    (plan,) = made.clock()
    order = plan.orders[0]
    odds = np.sqrt(made.held) * [1, 1, 1, 3, 3]
    total = np.zeros(5)
    for probability, chosen in cohorts(odds, cohort) if cohort < 5 else [(1.0, list(range(5)))]:
        orders = Orders.of(order._replace(client=client) for client in chosen)
        one = Plan(0, 0, plan.closed, plan.ready, orders, 1)
        total[chosen] += probability * np.array(weights_of(one, made))
    assert total == pytest.approx(made.held / made.held.sum())


def test_what_cannot_be_unbiased_is_refused():
    for changes, said in (
        ({"among": "available"}, "accepted: among: members"),
        ({"scheme": "A"}, "accepted: participation B or C"),
        ({"selection": {"name": "importance", "odds": {"kiosk": 2}}}, 'no population group "kiosk".*kiosks'),
    ):
        with pytest.raises(ScenarioError, match=said):
            prepared(**changes)
    prepared(weights="fixed", among="available")
