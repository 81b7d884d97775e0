"""What an older update counts, and when the timing policies aggregate, against the papers' formulas."""

from dataclasses import replace
from itertools import pairwise
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import ValidationError

from fedactors import Scenario, registry
from fedactors.clock.timings.fedasync import FedAsync
from fedactors.clock.timings.fedbuff import FedBuff
from fedactors.clock.timings.semi_synchronous import SemiSynchronous
from fedactors.clock.timings.staleness import ConstantStaleness, HingeStaleness, PolynomialStaleness, StalenessWeight
from fedactors.errors import ScenarioError
from fedactors.plan import Orders, Plan
from fedactors.simulation.prepare import prepare
from fedactors.simulation.tasks import weights_of


def test_the_functions_of_the_paper():
    assert [ConstantStaleness().factor(tau) for tau in range(3)] == [1, 1, 1]
    assert [PolynomialStaleness(a=2.0).factor(tau) for tau in range(3)] == [1, 1 / 4, 1 / 9]
    assert [HingeStaleness(a=10.0, b=4).factor(tau) for tau in (0, 4, 5, 6)] == [1, 1, 1 / 11, 1 / 21]


@pytest.mark.parametrize("name", registry.names("staleness"))
def test_every_function_is_one_for_an_update_that_is_up_to_date_and_never_grows(name):
    factors = [registry.lookup("staleness", name)().factor(tau) for tau in range(50)]
    assert factors[0] == 1
    assert all(later <= earlier for earlier, later in pairwise(factors))
    assert factors[-1] > 0


def test_fedbuff_weighs_by_one_over_the_root():
    policy = FedBuff(concurrency=5)
    assert [policy.weight(tau) for tau in range(9)] == pytest.approx([1 / sqrt(1 + tau) for tau in range(9)])
    assert (policy.updates, policy.every, policy.mixes) == (10, None, False)


def test_fedasync_mixes_by_alpha_times_the_function():
    policy = FedAsync(concurrency=5, mixing=0.9, staleness=HingeStaleness(a=1.0, b=1))
    assert [policy.weight(tau) for tau in range(4)] == pytest.approx([0.9, 0.9, 0.45, 0.3])
    assert (policy.updates, policy.mixes) == (1, True)


def test_a_bound_that_cannot_be_kept_is_refused():
    with pytest.raises(ValidationError, match="one update at a time"):
        FedAsync(concurrency=5, max_staleness=2, on_stale="wait")
    with pytest.raises(ValidationError, match="needs max_staleness"):
        SemiSynchronous(concurrency=5, period="1min", on_stale="wait")


def updates_under(staleness, bases):
    """Return the plan of an aggregation after the first, of updates that began from the versions `bases`; a setting."""
    data = {
        "name": "stale",
        "task": {"dataset": {"name": "synthetic"}, "model": "logistic", "partition": "natural"},
        "population": [{"name": "devices", "count": 3}],
        "server": {
            "rounds": 2,
            "timing": {"name": "semi-synchronous", "concurrency": 3, "period": "1min", "staleness": staleness},
            "participation": "uniform",
        },
    }
    made = prepare(Scenario.from_data(data, "stale.yaml"))
    order = next(iter(made.clock())).orders[0]
    orders = Orders.of(order._replace(client=client, base=base) for client, base in enumerate(bases))
    return Plan(1, 0, 1, 1, orders, 2), made


def test_refls_weights_add_up_as_without():
    """Two fresh updates and one of tau = 1, 1/3 each: 1/3, 1/3, 1/6 times (1 / (5/6)), as 1, 1, 1/2 over their sum."""
    assert weights_of(*updates_under("refl", (1, 1, 0))).tolist() == pytest.approx([0.4, 0.4, 0.2])
    with pytest.raises(ValidationError, match="one at a time"):
        FedAsync(concurrency=3, staleness="refl")


class Fresh(StalenessWeight):
    """A weight of the user's that cuts off what is stale."""

    normalised: ClassVar[bool] = True
    name: str = "fresh"

    def factor(self, staleness):
        return float(staleness == 0)


@pytest.mark.parametrize(("bases", "expected"), [((0, 0), [0.0, 0.0]), ((1, 0), [1.0, 0.0])])
def test_where_nothing_counts_there_is_no_sum_to_scale_to(bases, expected):
    """Of two updates at one half each the fresh one counts in full; two stale ones count nothing."""
    plan, made = updates_under("refl", bases)
    timing = made.scenario.server.timing.model_copy(update={"staleness": Fresh()})
    server = made.scenario.server.model_copy(update={"timing": timing})
    own = replace(made, scenario=made.scenario.model_copy(update={"server": server}))
    assert weights_of(plan, own).tolist() == expected


class Odd(StalenessWeight):
    """A weight of the user's that returns what it is given."""

    name: str = "odd"
    found: Any = None

    def factor(self, staleness):
        return self.found


@pytest.mark.parametrize("found", [-1.0, float("nan"), float("inf"), "a", None])
def test_what_is_no_weight_is_refused(found):
    policy = SemiSynchronous(concurrency=5, period="1h", staleness=Odd(found=found))
    with pytest.raises(ScenarioError, match=rf"test_staleness.py, Odd.factor\(2\): returned {found!r} \(acc"):
        policy.weight(2)


@pytest.mark.parametrize("found", [0, 0.0, np.float32(0.5)])
def test_any_finite_number_that_is_not_negative_is_a_weight(found):
    assert SemiSynchronous(concurrency=5, period="1h", staleness=Odd(found=found)).weight(2) == found
