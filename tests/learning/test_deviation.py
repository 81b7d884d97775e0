"""REFL's weights of stale updates: worked by hand, with numpy beside them in whole runs, and the same bits anywhere."""

import math

import numpy as np
import pytest
import torch

import fedactors
from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import Round
from fedactors.learning.traffic.deviation import DeviationWeights
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import resume
from fedactors.simulation.verify import verify
from tests.simulation.test_checkpoints import assert_same, scenario_of

TIMING = "server.timing={name: semi-synchronous, concurrency: 14, period: 3s, staleness: {name: refl, beta: %s}}"


def late(beta, *changes):
    """Late updates beside fresh ones, of devices that are slower than a period."""
    return scenario_of("server.cohort=all", "server.participation=uniform", "server.rounds=8", TIMING % beta, *changes)


def weighed(beta, rows, updates):
    facts = Round(5, len(rows), 1.0, 0.1, updates=tuple(updates))
    return DeviationWeights(beta=beta).combine_in_round(torch.tensor(rows), facts, compared=2).tolist()


def test_by_hand():
    """Fresh (2, 0) and (0, 0), so u_F = (1, 0), n_F = 2; stale (1, 3) with tau = 1 and (4, 0) with tau = 2.

    The mean would move by (0, 3) / 3 and (3, 0) / 3, so Lambda is 1 for both, and Lambda_max too. With beta = 1/2,
    and q = (1 - 1/e) / 2: f = 1, 1, 1/4 + q, 1/6 + q. All p are 1/4, and weights p f are scaled to the sum 1. What
    comes in is p / (tau + 1), on any scale.
    """
    rows = [[2.0, 0.0, 8.0], [0.0, 0.0, 0.0], [1.0, 3.0, 0.0], [4.0, 0.0, 0.0]]
    q = (1 - math.exp(-1)) / 2
    f = np.array([1, 1, 1 / 4 + q, 1 / 6 + q])
    updates = [(0.35, 0), (0.35, 0), (0.35 / 2, 1), (0.35 / 3, 2)]
    scale = (0.35 * 2 + 0.35 / 2 + 0.35 / 3) / f.sum()
    assert weighed(0.5, rows, updates) == pytest.approx((scale * f @ np.array(rows)).tolist(), rel=1e-6)


@pytest.mark.parametrize(
    ("beta", "updates"),
    [(0.5, [(0.0, 0), (0.0, 1)]), (1.0, [(0.0, 0), (1.0, 1)])],
    ids=["no update has a weight", "the only one with a weight is the mean of the fresh ones"],
)
def test_where_nothing_counts_the_sum_is_zero(beta, updates):
    """The second case: Lambda is 0 for the stale update, so f is 1 - e^0 = 0, as Lambda_max is that of another one."""
    rows = [[2.0, 0.0], [2.0, 0.0], [5.0, 0.0]]
    assert weighed(beta, rows, [*updates, (0.0, 1)]) == [0.0, 0.0]


def test_the_update_that_differs_more_counts_more():
    """As before, the second at (1.5, 0): the mean moves by 1/6, so Lambda is 1/36 and f = 1/6 + (1 - e^-1/36) / 2."""
    rule = DeviationWeights(beta=0.5)
    rows = torch.tensor([[2.0, 0.0], [0.0, 0.0], [1.0, 3.0], [1.5, 0.0]], dtype=torch.float64)
    found = rule.factors(rows, torch.tensor([0, 0, 1, 2]))
    expected = [1, 1, 1 / 4 + (1 - math.exp(-1)) / 2, 1 / 6 + (1 - math.exp(-1 / 36)) / 2]
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("beta", [0.35, 1.0])
@pytest.mark.parametrize(
    ("ages", "first"),
    [((0, 0, 0), 1.0), ((1, 2, 2), 1.0), ((0, 1, 2), 0.0)],
    ids=["all fresh", "none fresh", "the fresh one is zero"],
)
def test_where_nothing_can_be_compared_ages_alone_count(ages, first, beta):
    rows = [[first, 2.0 * first], [3.0, 4.0], [5.0, 7.0]]
    weights = [1 / (3 * (age + 1)) for age in ages]
    expected = np.array(weights) @ np.array(rows)
    assert weighed(beta, rows, zip(weights, ages, strict=True)) == pytest.approx(expected.tolist(), rel=1e-6)


def test_a_run_in_which_nothing_but_deviation_counts_has_rounds_without_fresh_updates(tmp_path):
    """A round of two updates, while ten devices work: some rounds hear late updates alone."""
    timing = "server.timing={name: fedbuff, buffer: 2, concurrency: 10, staleness: {name: refl, beta: 1.0}}"
    scenario = scenario_of("server.cohort=all", "server.participation=uniform", timing, "server.rounds=18")
    plans = list(prepare(scenario).clock())
    assert any(len(plan.heard()) and (plan.heard().base < plan.version).all() for plan in plans)
    found = fedactors.run(scenario, tmp_path / "run", fleet="local", report=False)
    assert np.isfinite(found.state["x"]).all()


def test_a_run_against_numpy(monkeypatch, tmp_path):
    """Every aggregation of a run, from the updates that clients made and how old what they began from was."""
    from fedactors.learning.traffic import uploads

    seen, made = [], {}
    original, one_by_one = DeviationWeights.combine_in_round, uploads.one_by_one

    def note(chunk, uploads, losses):
        of_round = made.setdefault(chunk.version, [])
        rows = zip(chunk.clients, chunk.base_versions, uploads["delta"].numpy().copy(), strict=True)
        of_round.extend((client, chunk.version - trip, row) for client, trip, row in rows)
        return one_by_one(chunk, uploads, losses)

    def remember(rule, rows, facts, compared):
        found = original(rule, rows, facts, compared)
        _, ages, own = zip(*sorted(made[facts.version], key=lambda one: one[0]), strict=True)
        assert [age for _, age in facts.updates] == list(ages)
        np.testing.assert_array_equal(rows.numpy(), np.stack(own))
        seen.append((rows.numpy().astype(float), facts.updates, found.numpy()))
        return found

    monkeypatch.setattr(uploads, "one_by_one", note)
    monkeypatch.setattr(DeviationWeights, "combine_in_round", remember)
    fedactors.run(late(0.35, "server.rounds=18"), tmp_path / "run", fleet="local", report=False)
    mixed = 0
    for rows, updates, found in seen:
        weights, ages = (np.array(column) for column in zip(*updates, strict=True))
        f = np.ones(len(rows))
        if (ages == 0).any() and (ages > 0).any():
            fresh = rows[ages == 0].mean(0)
            n = int((ages == 0).sum())
            moved = ((fresh - (rows + n * fresh) / (n + 1)) ** 2).sum(1) / (fresh**2).sum()
            more = 0.35 * (1 - np.exp(-moved / moved[ages > 0].max()))
            f = np.where(ages > 0, 0.65 / (ages + 1) + more, 1.0)
            mixed += 1
        shares = weights * (ages + 1) * f
        np.testing.assert_allclose(found, shares / shares.sum() * weights.sum() @ rows, rtol=2e-4, atol=1e-6)
    assert mixed > 3


def test_a_run_that_was_stopped_goes_on_with_the_same_bits(tmp_path):
    fedactors.run(late(0.35), tmp_path / "whole", fleet="local", report=False)
    fedactors.run(late(0.35), tmp_path / "broken", fleet="local", report=False, stop_after=4)
    resume(tmp_path / "broken", fleet="local", report=False)
    assert_same(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.slow
def test_digests_do_not_depend_on_the_number_of_actors():
    assert verify(late(0.35))["equal"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("server.algorithm=scaffold", "sums more than the updates"),
        ("server.uplink=[{name: clip, norm: 1.0}, {name: gaussian, multiplier: 1.0}]", "noise is made for weights"),
    ],
)
def test_what_does_not_go_together_is_refused(change, said):
    with pytest.raises(ScenarioError, match=said):
        prepare(late(0.35, change))
