"""Devices without work are never asked and have no loss: N, n and S of the papers do not count them.

Of twelve devices with 50, 351, 166, 62, 846, 91, 82, 92, 247, 313, 396 and 51 samples, those with less than a batch of
90 have no work: four.
"""

from dataclasses import replace
from itertools import combinations
from math import ceil

import numpy as np
import pytest

import fedactors
from fedactors.algorithms.participation import Members
from fedactors.learning.training_task import TrainingTask
from fedactors.models.network import initial
from fedactors.plan import SECOND, Orders, Plan
from fedactors.scenario.model import Scenario
from fedactors.simulation.objective_state import Objective, Verdict, settled
from fedactors.simulation.prepare import prepare
from fedactors.simulation.tasks import task_of, weights_of

IDLE = (0, 3, 6, 11)
WORKING = (1, 2, 4, 5, 7, 8, 9, 10)
HELD = 351 + 166 + 846 + 91 + 92 + 247 + 313 + 396


def scenario(algorithm="fedavg", groups=None, **server):
    data = {
        "name": "idle",
        "seed": 4,
        "task": {"dataset": "synthetic", "model": "logistic", "partition": "natural"},
        "population": groups or [{"name": "devices", "count": 12}],
        "server": {
            "rounds": 4,
            "cohort": "all",
            "algorithm": algorithm,
            "participation": "uniform",
            "local": {"steps": 1, "batch": 90, "drop_last": True},
            "schedule": {"name": "constant", "lr": 0.1},
            **server,
        },
    }
    return Scenario.from_data(data, "idle.yaml")


def model(tmp_path, name, *args, **server):
    made = scenario(*args, **server)
    return fedactors.run(made, tmp_path / name, fleet="local", report=False).state["x"]


def test_the_setting_counts_devices_with_work():
    setting = prepare(scenario()).setting
    assert (setting.clients, setting.cohort, setting.samples) == (8, 8, HELD)
    assert prepare(scenario(cohort=5)).setting.cohort == 5


def test_servers_passes_are_those_of_a_client_with_data():
    """FSL's E_s = ceil(n E_c / (N n_0)): ceil(2502 / (8 * 100)) = 4; with N = 12 it would be 3."""
    fsl = scenario("fsl", local={"epochs": 1, "batch": 90, "drop_last": True}, data={"name": "iid", "samples": 100})
    prepared = prepare(fsl)
    work = fsl.server.algorithm.central_work(prepared.setting)
    assert ceil(HELD / 800) == 4
    assert work.wanted == 4 * ceil(100 / 90)


def test_single_steps_of_all_are_fedavgs_also_beside_devices_without_data(tmp_path):
    """I-SC4: K = 1, S = all."""
    scaffold = model(tmp_path, "scaffold", {"name": "scaffold", "global_lr": 1.0})
    plain = model(tmp_path, "fedavg")
    np.testing.assert_allclose(scaffold, plain, rtol=1e-4, atol=1e-6)


def test_the_first_round_of_feddyn_goes_twice_as_far_as_fedavgs(tmp_path):
    """I-FD2: with full participation x_1 = x_0 + 2 mean Delta."""
    start = initial(prepare(scenario()).model, 4)
    feddyn, plain = (model(tmp_path, name, name, rounds=1) for name in ("feddyn", "fedavg"))
    np.testing.assert_allclose(feddyn - start, 2 * (plain - start), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scheme", "ABC")
@pytest.mark.parametrize("cohort", [1, 3])
def test_unbiased_weights_are_shares_on_average(scheme, cohort):
    """Over all cohorts of the devices that can be asked, E[weight] = p_k, shares of what these hold."""
    prepared = prepare(scenario(participation={"name": scheme, "weights": "unbiased"}, cohort=cohort, among="members"))
    plan = next(iter(prepared.clock()))
    order = plan.orders[0]
    total, cohorts = np.zeros(12), list(combinations(WORKING, cohort))
    for chosen in cohorts:
        orders = Orders.of(order._replace(client=client) for client in chosen)
        total[list(chosen)] += weights_of(Plan(0, 0, plan.closed, plan.ready, orders, 1), prepared)
    assert total / len(cohorts) == pytest.approx(
        [0.0 if client in IDLE else prepared.held[client] / HELD for client in range(12)]
    )


def test_fixed_weights_of_all_add_up_to_one():
    prepared = prepare(scenario(participation={"name": "B", "weights": "fixed"}))
    assert sum(weights_of(next(iter(prepared.clock())), prepared)) == pytest.approx(1.0)


GROUPS = [{"name": "leaving", "count": 1, "depart": "1s"}, {"name": "staying", "count": 11}]


def test_who_leaves_without_ever_having_had_work_moves_no_mean():
    """Device 0 has none. Devices with work are eight before and after."""
    prepared = prepare(scenario("scaffold", GROUPS))
    (plan, *_) = prepared.clock()
    plan = replace(plan, opened=0, closed=2 * SECOND, ready=2 * SECOND, arrived=(), departed=(0,))
    facts = task_of(plan, prepared, "cpu", last=False).facts
    assert (facts.members, facts.arrived, facts.departed) == (8, (), ())


def test_who_leaves_with_work_is_a_member_until_then():
    groups = [{"name": "first", "count": 1}, GROUPS[0], {"name": "rest", "count": 10}]
    prepared = prepare(scenario("scaffold", groups))
    (plan, *_) = prepared.clock()
    plan = replace(plan, opened=0, closed=2 * SECOND, ready=2 * SECOND, arrived=(), departed=(1,))
    facts = task_of(plan, prepared, "cpu", last=False).facts
    assert (facts.members, facts.departed) == (8, (1,))


def test_the_objective_counts_members_with_work():
    prepared = prepare(scenario(membership="vanilla"))
    objective = Objective(prepared)
    state = objective.at(next(iter(prepared.clock())), settled("exclude"))
    assert state.members == Members(8, HELD)
    assert (objective.size, state.before) == (8, 8)
    assert objective.share(1) == pytest.approx(351 / HELD)


def test_a_device_without_work_that_leaves_or_arrives_moves_no_objective():
    """Device 0 has none: no decision is asked for, the rate goes on, and N stays 8. Device 1 has: N is 7, then 8.

    Its round's rate has been sent when it leaves, so the rate begins anew in the next round.
    """
    prepared = prepare(scenario(membership="vanilla", cohort=3))
    (first, *_) = prepared.clock()

    def plan(version, **moves):
        return replace(first, version=version, opened=version * SECOND, orders=Orders.of([]), **moves)

    def seen(client):
        objective, asked = Objective(prepared), []

        def decide(objective, client, done):
            asked.append(client)
            return Verdict(exclude=True)

        quiet = {"arrived": (), "departed": ()}
        moves = [quiet, quiet | {"departed": (client,)}, quiet | {"arrived": (client,)}]
        states = [objective.at(plan(number, **one), decide) for number, one in enumerate(moves)]
        return asked, objective.size, [(one.before, one.round, len(one.moves)) for one in states]

    assert seen(0) == ([], 8, [(8, 1, 0), (8, 2, 0), (8, 3, 0)])
    assert seen(1) == ([1], 8, [(8, 1, 0), (8, 2, 1), (7, 1, 1)])


def test_shares_are_of_the_mean_of_those_with_work():
    """FedDyn's alpha by shares: n_k over the mean of the eight; what is left out of a pass does not count."""
    prepared = prepare(scenario())
    task = TrainingTask(prepared.model, prepared.scenario.server.algorithm, 4, tuple(prepared.workloads))
    assert task.shares[list(WORKING)].mean() == pytest.approx(1.0)
    assert not task.shares[list(IDLE)].any()
