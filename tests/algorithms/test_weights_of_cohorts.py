"""Which set a device's share p^k is a share of: enumerated over all cohorts of a small population."""

from itertools import combinations

import numpy as np
import pytest

from fedactors.errors import ScenarioError
from fedactors.optim.global_rate import global_step
from fedactors.plan import Orders, Plan
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.meanings import meanings
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import replay
from fedactors.simulation.tasks import weights_of

SIZES = (35, 28, 45, 12, 11)


def prepared(scheme, weights, cohort, **server):
    data = {
        "name": "shares",
        "task": {"dataset": {"name": "synthetic"}, "model": "logistic", "partition": "natural"},
        "population": [{"name": "devices", "count": 5}],
        "server": {
            "rounds": 1,
            "cohort": cohort,
            "among": "members",
            "algorithm": "fedavg",
            "participation": {"name": scheme, "weights": weights},
            "local": {"epochs": 2, "batch": 10},
            "schedule": {"name": "constant", "lr": 0.1},
            **server,
        },
    }
    made = prepare(Scenario.from_data(data, "shares.yaml"))
    made.held[:] = SIZES
    return made


def expected_over_shares(made, cohort):
    """Return E[weight_k] / p_k of each client over all cohorts of one size, all of whose members finish."""
    (plan,) = made.clock()
    order = plan.orders[0]
    total, cohorts = [0.0] * 5, list(combinations(range(5), cohort))
    for chosen in cohorts:
        orders = Orders.of(order._replace(client=client) for client in chosen)
        one = Plan(0, 0, plan.closed, plan.ready, orders, 1)
        for client, weight in zip(chosen, weights_of(one, made), strict=True):
            total[client] += weight / len(cohorts)
    return [one / (size / sum(SIZES)) for one, size in zip(total, SIZES, strict=True)]


@pytest.mark.parametrize("scheme", "ABC")
@pytest.mark.parametrize("cohort", [1, 2, 3, 4, 5])
def test_unbiased_weights_are_each_devices_share_on_average(scheme, cohort):
    made = prepared(scheme, "unbiased", cohort)
    assert expected_over_shares(made, cohort) == pytest.approx([1.0] * 5)


@pytest.mark.parametrize("selection", ["uniform", "round-robin", "importance"])
def test_unbiased_weights_are_each_devices_share_over_many_rounds(selection):
    """1,000 cohorts of 2 of 5: the relative error of a mean weight is sqrt((1 - pi) / (pi 1000)), 8 % at pi = .13."""
    made = prepared("B", "unbiased", 2, rounds=1000, selection=selection, local={"steps": 1, "batch": 10})
    total = np.zeros(5)
    for plan in made.clock():
        np.add.at(total, plan.heard().client, weights_of(plan, made))
    assert total / 1000 == pytest.approx(np.array(SIZES) / sum(SIZES), rel=0.25)


@pytest.mark.parametrize("selection", ["samples", "oort", "refl", "availability"])
def test_unbiased_weights_are_refused_where_chances_are_not_known(selection):
    """Of draws without replacement by odds, as `samples` makes them, chances have no closed form."""
    with pytest.raises(ScenarioError, match=f"server.selection.name: {selection} asks some clients more .*importance"):
        prepared("B", "unbiased", 2, selection=selection)
    prepared("B", "fixed", 2, selection=selection)


def test_shares_of_those_asked_favour_small_devices():
    """A cohort of one has the weight 1, one time in five: E[weight] / p = 131 / (5 n_k)."""
    found = expected_over_shares(prepared("B", "share_of_asked", 1), 1)
    assert found == pytest.approx([131 / (5 * size) for size in SIZES])
    assert [round(one, 2) for one in found] == [0.75, 0.94, 0.58, 2.18, 2.38]


@pytest.mark.parametrize("cohort", [1, 2, 5])
def test_fixed_weights_count_those_who_are_not_asked_as_silent(cohort):
    """Under B and C a device counts p^k whenever it is asked: S / N times on average."""
    for scheme in "BC":
        found = expected_over_shares(prepared(scheme, "fixed", cohort), cohort)
        assert found == pytest.approx([cohort / 5] * 5)


@pytest.mark.parametrize(("weights", "total"), [("fixed", 0.24), ("unbiased", 6 * 0.24), ("share_of_asked", 1.0)])
def test_of_six_devices_the_one_that_is_on_counts_its_share_alone(tmp_path, weights, total):
    """Six devices hold 24, 19, 12, 20, 15 and 10 of 100 samples, and the first one is on: `all` that are available.

    The paper counts the others as s = 0: under Scheme B weights add up to .24, not to 1.
    """
    later = "".join(f"d{k},7200,86400\n" for k in range(1, 6))
    (tmp_path / "windows.csv").write_text("device,on_s,off_s\nd0,0,86400\n" + later, encoding="utf-8")
    data = {
        "name": "six",
        "task": {"dataset": "synthetic", "model": "logistic", "partition": "natural"},
        "population": [{"name": "phones", "count": 6, "availability": {"name": "trace", "path": "windows.csv"}}],
        "server": {
            "rounds": 1,
            "participation": {"name": "B", "weights": weights},
            "local": {"epochs": 1, "batch": 10},
        },
    }
    made = prepare(Scenario.from_data(data, "six.yaml", folder=tmp_path))
    made.held[:] = (24, 19, 12, 20, 15, 10)
    (plan,) = made.clock()
    assert [order.client for order in plan.heard()] == [0]
    assert sum(weights_of(plan, made)) == pytest.approx(total)


@pytest.mark.parametrize(
    ("scheme", "cohort", "among", "said"),
    [
        (
            "B",
            2,
            "members",
            "where 2 of 5 devices are asked: an update is weighted by its device's share of",
        ),
        ("C", "all", "available", "participation C, where only devices that are on are asked: an update is weighted"),
        ("B", "all", "members", None),
        ("samples", 2, "members", None),
    ],
)
def test_check_and_reports_say_what_a_share_is_of(scheme, cohort, among, said):
    participation = scheme if scheme == "samples" else {"name": scheme}
    scenario = prepared("B", "fixed", cohort, among=among, participation=participation).scenario
    notes = [note for note in meanings(scenario) if "global_lr" not in note]
    assert notes == [] if said is None else said in notes[0]
    assert replay(scenario, None).summary["notes"] == notes


@pytest.mark.parametrize("weights", ["share_of_asked", "fixed", "unbiased"])
def test_the_sentence_names_the_other_ways(weights):
    scenario = prepared("B", "fixed", 2, participation={"name": "B", "weights": weights}).scenario
    [note] = [note for note in meanings(scenario) if "global_lr" not in note]
    _, others = note.split(" (server.participation.weights=")
    named = {name for name in ("share_of_asked", "fixed", "unbiased") if f"{name} takes its device's share" in others}
    assert named == {"share_of_asked", "fixed", "unbiased"} - {weights}


@pytest.mark.parametrize(
    ("lr", "local", "algorithm", "said"),
    [
        (1e-5, {"clip": {"norm": 1.0}}, "scaffold", "gradients are clipped"),
        (1e-5, {"optimizer": {"name": "sgd", "weight_decay": 1e-4}}, "scaffold", 'the optimiser "sgd" has options'),
        (1e-5, {}, "scaffold", None),
        (0.1, {"clip": {"norm": 1.0}}, "scaffold", None),
        (1e-5, {"clip": {"norm": 1.0}}, {"name": "scaffold", "option": "I"}, None),
        (1e-5, {"clip": {"norm": 1.0}}, "fedavg", None),
    ],
)
def test_check_says_where_digits_are_lost(lr, local, algorithm, said):
    """A mean gradient from a difference of models has a relative error of about 7e-8 over the rate."""
    scenario = prepared(
        "B", "fixed", "all", participation="uniform", algorithm=algorithm, among="members",
        local={"epochs": 2, "batch": 10, **local}, schedule={"name": "constant", "lr": lr},
    ).scenario  # fmt: skip
    notes = [note for note in meanings(scenario) if "global_lr" not in note]
    if said is None:
        assert notes == []
    else:
        assert said in notes[0]
        assert notes[0].endswith("at 1e-05 their relative error is about 0.007")


def test_the_square_root_of_those_heard():
    """Thirty devices, of which two report: eta_g is 1.41, where the square root of the cohort is 5.48."""
    assert global_step("sqrt_heard", heard=2, cohort=30) == pytest.approx(2**0.5)
    assert global_step(None, heard=2, cohort=30) == pytest.approx(30**0.5)
    assert global_step(0.5, heard=2, cohort=30) == 0.5
    assert global_step("sqrt_heard", heard=0, cohort=30) == 1.0
