"""Traffic is what each algorithm's table says, times those who took part; who is heard has sent all of it (I-S3)."""

import pytest

from fedactors import Scenario
from fedactors.plan import Outcome
from fedactors.simulation.prepare import prepare
from tests.algorithms.test_runs import BASE

MODELS = {"fedavg": (1, 1), "fsl": (1, 1), "fsl-p": (1, 1), "scaffold": (2, 2), "feddyn": (1, 1), "dsl": (1, 1)}


def plans(**server):
    scenario = Scenario.model_validate({**BASE, "server": {**BASE["server"], "rounds": 6, **server}})
    prepared = prepare(scenario)
    return list(prepared.clock()), prepared


@pytest.mark.parametrize("name", MODELS)
def test_those_who_finish_move_what_the_table_says(name):
    options = {"dsl": {"server_lr": 0.05, "share": "upfront"}}
    found, prepared = plans(algorithm={"name": name, **options.get(name, {})})
    down, up = MODELS[name]
    for order in (order for plan in found for order in plan.orders):
        assert order.outcome is Outcome.COMPLETE
        assert (order.down, order.up) == (down * prepared.model_bytes, up * prepared.model_bytes)


@pytest.mark.parametrize("scheme", "ABC")
def test_who_is_heard_has_sent_a_model_and_nobody_moves_more(scheme):
    """Under a deadline that cuts many short."""
    found, prepared = plans(participation=scheme, deadline="600ms", local={"epochs": 3, "batch": 8})
    orders = [order for plan in found for order in plan.orders]
    size = prepared.model_bytes
    assert {order.up for order in orders if order.heard} == {size}
    assert all(0 <= order.up <= size and 0 <= order.down <= size for order in orders)
    assert {order.outcome for order in orders} > {Outcome.PARTIAL}
