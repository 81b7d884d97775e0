"""Robust aggregation: each rule against its formula, against malicious updates, and on one to three actors."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from fedactors import Scenario, run
from fedactors.algorithms.aggregation import (
    GeometricMedianAggregation,
    KrumAggregation,
    MedianAggregation,
    MultiKrumAggregation,
    TrimmedMeanAggregation,
)
from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import Round
from fedactors.learning.combining import combined
from fedactors.simulation.checks.check import check
from fedactors.simulation.runner import resume
from fedactors.simulation.verify import verify

RULES = [
    MedianAggregation(),
    TrimmedMeanAggregation(share=0.3),
    KrumAggregation(malicious=3),
    MultiKrumAggregation(malicious=3),
    MultiKrumAggregation(malicious=3, keep=4),
    GeometricMedianAggregation(),
]


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("clients", [1, 2, 5, 8])
def test_the_median_is_numpys(clients):
    rows = numbers(clients, 50)
    np.testing.assert_allclose(MedianAggregation().combine(rows), np.median(rows.numpy(), axis=0), rtol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.49])
def test_the_trimmed_mean_is_scipys(share):
    rows = numbers(11, 50)
    wanted = stats.trim_mean(rows.numpy(), share, axis=0)
    np.testing.assert_allclose(TrimmedMeanAggregation(share=share).combine(rows), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("share", "clients", "cut"), [("0.29", 100, 29), ("0.35", 180, 63), ("0.1", 30, 3), ("1e-2", 100, 1)]
)
def test_a_share_is_the_decimal_number_that_was_written(share, clients, cut):
    """29 of 100 at either end; 0.29 * 100 is less than 29 in binary."""
    rule = TrimmedMeanAggregation(share=float(share))
    rows = torch.arange(clients, dtype=torch.float64)[:, None] ** 2
    assert float(rule.combine(rows)) == pytest.approx(float((rows[cut : clients - cut]).mean()), rel=1e-12)
    assert not rule.problem(clients)
    assert TrimmedMeanAggregation(share=0.01).problem(99)


def test_krum_is_its_definition():
    """Over all subsets: the score of v_i is the least sum of squared distances to n - f - 2 others."""
    rows, f = numbers(9, 6), 2
    scores = []
    for i in range(9):
        others = [float((rows[i] - rows[j]).double().square().sum()) for j in range(9) if j != i]
        scores.append(min(sum(chosen) for chosen in combinations(others, 9 - f - 2)))
    best = np.argsort(scores, kind="stable")
    assert torch.equal(KrumAggregation(malicious=f).combine(rows), rows[best[0]])
    kept = MultiKrumAggregation(malicious=f, keep=3).combine(rows)
    torch.testing.assert_close(kept, rows[sorted(best[:3].tolist())].mean(0))


def test_the_geometric_median_has_the_least_sum_of_distances():
    rows = numbers(7, 3).double()

    def total(z):
        return float(np.linalg.norm(rows.numpy() - z, axis=1).sum())

    found = GeometricMedianAggregation(iterations=10_000, tolerance=1e-12).combine(rows).numpy()
    wanted = optimize.minimize(
        total, rows.mean(0).numpy(), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    np.testing.assert_allclose(found, wanted.x, atol=1e-6)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.model_dump_json())
@pytest.mark.parametrize("huge", [1e6, -1e6])
def test_malicious_updates_of_a_million_do_not_move_the_result(rule, huge):
    """Seven good updates near 1, three malicious ones: the result stays within what the good ones span."""
    good = 1 + 0.1 * numbers(7, 40)
    together = torch.cat([good[:3], huge * torch.ones(3, 40), good[3:]])
    found = rule.combine(together)
    assert (found >= good.min(0).values - 0.05).all()
    assert (found <= good.max(0).values + 0.05).all()
    assert (together.mean(0) - 1).abs().min() > 1e5


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_equal_updates_and_a_single_one_are_the_result(rule):
    row = numbers(1, 30)
    torch.testing.assert_close(rule.combine(row), row[0])
    torch.testing.assert_close(rule.combine(row.expand(9, 30)), row[0])


ROUND = Round(0, 5, 1.0, 0.1)


def test_all_that_a_client_uploads_is_one_row_to_a_rule():
    rows = {"delta": numbers(5, 4), "buffers": numbers(5, 2, seed=1)}
    found = combined(KrumAggregation(malicious=1), rows, ROUND, compared=2)
    (chosen,) = (i for i in range(5) if torch.equal(rows["delta"][i], found["delta"]))
    assert torch.equal(found["buffers"], rows["buffers"][chosen])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.model_dump_json())
@pytest.mark.parametrize("size", [0.0, 1.0, 1e4])
def test_statistics_do_not_say_which_updates_are_alike(rule, size):
    """Nine updates of 20 parameters, and two buffers: the same nine are weighed alike whatever the buffers are.

    Buffers stand in a row twice: as the last two values of the change, and as values.
    """
    changes, values = numbers(9, 20), size * numbers(9, 2, seed=5)
    rows = {"delta": torch.cat([changes, values - 7], 1), "buffers": values}
    found = combined(rule, rows, ROUND, compared=20)
    alone = rule.combine(changes)
    torch.testing.assert_close(found["delta"][:20], alone, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found["buffers"], found["delta"][20:] + 7, rtol=1e-3, atol=1e-3)


def test_large_statistics_do_not_hide_an_attack():
    """Honest changes (1, 0) and (0.9, 0), statistics 100 apart; an attacker sends (-3, 0) with one in the middle.

    By hand, f = 1 of n = 5: of the four honest ones each is within .1 of the others, the attacker about 4 from all, so
    Multi-Krum leaves it out and the geometric median lies among the honest ones.
    """
    changes = torch.tensor([[1.0, 0.0], [0.9, 0.0], [1.0, 0.0], [0.9, 0.0], [-3.0, 0.0]])
    statistics = torch.tensor([[100.0], [200.0], [300.0], [400.0], [250.0]])
    rows = {"delta": torch.cat([changes, statistics], 1), "buffers": statistics}
    found = combined(MultiKrumAggregation(malicious=1), rows, ROUND, compared=2)
    assert found["delta"][0] == pytest.approx(0.95)
    assert found["buffers"] == pytest.approx(250.0)
    assert combined(KrumAggregation(malicious=1), rows, ROUND, compared=2)["delta"][0] > 0
    assert combined(GeometricMedianAggregation(), rows, ROUND, compared=2)["delta"][0] > 0.8


@pytest.mark.parametrize(("heard", "cut"), [(9, 1), (3, 1), (2, 0), (1, 0), (20, 2)])
def test_a_trimmed_mean_of_few_updates_is_no_plain_mean(heard, cut):
    """Ten percent of nine is less than one value, and one of a million among them would move the mean."""
    rows = torch.arange(heard, dtype=torch.float64)[:, None] ** 3
    found = TrimmedMeanAggregation(share=0.1).combine(rows)
    assert float(found) == pytest.approx(float(rows[cut : heard - cut].mean()))


def test_a_share_of_nothing_trims_nothing():
    rows = numbers(9, 5)
    torch.testing.assert_close(TrimmedMeanAggregation(share=0.0).combine(rows), rows.mean(0))


def test_multi_krum_of_few_updates_keeps_no_more_than_can_be_good():
    """Seven of twelve updates were to be kept; of the eight that came three may be malicious, and are."""
    rows = torch.cat([1 + 0.01 * numbers(5, 10), 50 + numbers(3, 10)])
    found = MultiKrumAggregation(malicious=3, keep=7).combine(rows)
    assert (found - 1).abs().max() < 0.1


BASE = {
    "name": "robust",
    "task": {"dataset": "digits", "model": {"name": "mlp", "hidden": [16]}, "partition": "iid"},
    "population": [{"name": "phones", "count": 30}],
    "server": {
        "rounds": 3, "cohort": 24, "local": {"epochs": 1, "batch": 5}, "schedule": {"name": "constant", "lr": 0.1},
    },
}  # fmt: skip


def scenario(aggregation, **server):
    return Scenario.from_data(
        {**BASE, "server": {**BASE["server"], "aggregation": aggregation, **server}}, "robust.yaml"
    )


@pytest.mark.parametrize(
    "aggregation",
    [
        "median", "trimmed_mean", "geometric_median", {"name": "krum", "malicious": 3},
        {"name": "multi_krum", "malicious": 3},
    ],
    ids=str,
)  # fmt: skip
def test_a_run_learns_under_every_rule(aggregation, tmp_path):
    result = run(scenario(aggregation, rounds=12), tmp_path / "run", fleet="local", report=False)
    assert result.summary["final"]["accuracy"] > 0.5


def test_clients_keep_models_of_their_own_under_a_rule(tmp_path):
    """Ditto's global model is FedAvg's under the same rule; own models are kept, also by a run that was stopped."""
    ditto = scenario("median", rounds=4, algorithm="ditto", evaluation={"clients": "all", "every": 2})
    whole = run(ditto, tmp_path / "whole", fleet="local", report=False)
    plain = run(scenario("median", rounds=4), tmp_path / "plain", fleet="local", report=False)
    assert np.array_equal(whole.state["x"], plain.state["x"])
    run(ditto, tmp_path / "broken", fleet="local", report=False, stop_after=2)
    again = resume(tmp_path / "broken", fleet="local", report=False)
    assert again.summary["digests"] == whole.summary["digests"]


def test_a_rule_is_given_the_updates_that_a_mean_averages(tmp_path):
    """One of 24 values is trimmed at either end: near the uniform mean of the same updates, and not equal to it."""
    trimmed = scenario({"name": "trimmed_mean", "share": 0.05}, rounds=1)
    mean = scenario("mean", rounds=1, participation="uniform")
    one = run(trimmed, tmp_path / "one", fleet="local", report=False).state["x"]
    other = run(mean, tmp_path / "other", fleet="local", report=False).state["x"]
    assert 0 < np.abs(one - other).max() < 0.05


@pytest.mark.slow
def test_the_bits_are_equal_on_one_to_three_actors():
    for aggregation in ("median", {"name": "krum", "malicious": 3}):
        assert verify(scenario(aggregation))["equal"]


def test_check_says_what_memory_single_updates_take():
    found = check(scenario("median"))
    assert found["memory_bytes"]["updates"] == 2 * 24 * found["model"]["bytes"]
    assert "updates" not in check(scenario("mean"))["memory_bytes"]


@pytest.mark.parametrize(
    ("aggregation", "server", "says"),
    [
        ("median", {"algorithm": "scaffold"}, 'algorithm "scaffold" sums more than the updates'),
        ("median", {"algorithm": "fednova"}, 'algorithm "fednova" sums more than the updates'),
        ("median", {"algorithm": {"name": "feddyn", "alpha": 0.1}}, 'algorithm "feddyn" sums more'),
        ("median", {"participation": "C"}, 'participation "C" does not make a mean'),
        ({"name": "krum", "malicious": 11}, {}, "11 malicious of 24 updates: at least 25 are needed"),
        ({"name": "krum"}, {}, "aggregation.malicious: is required"),
        ({"name": "trimmed_mean", "share": 0.01}, {}, "nothing would be trimmed"),
        ({"name": "trimmed_mean", "share": 0.5}, {}, "less than 0.5"),
        ({"name": "multi_krum", "malicious": 3, "keep": 22}, {}, "at most 21"),
        ({"name": "trimmed_mean", "share": 0.1}, {"quorum": 9}, "share 0.1 of 9 updates is less than one"),
        ({"name": "krum", "malicious": 5}, {"quorum": 12}, "5 malicious of 12 updates: at least 13 are needed"),
        ("median", {"cohort": "all", "timing": {"name": "fedbuff", "concurrency": 4, "buffer": 3}}, "different models"),
        ("median", {"cohort": "all", "timing": {"name": "fedasync", "concurrency": 4}}, "mixes whole models"),
        ("medain", {}, 'did you mean "median"?'),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(aggregation, server, says):
    with pytest.raises(ScenarioError) as refused:
        check(scenario(aggregation, **server))
    assert says in str(refused.value)
