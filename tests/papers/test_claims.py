"""Four verdicts, by hand: what holds, what fails, what was not learnt, and what is too close to tell."""

import pytest

from fedactors.papers.catalogue import FULL, REDUCED
from fedactors.papers.claims import at_least, at_most, counted, less, more, narrow, observed, printed, rising
from fedactors.papers.experiment import DIVERGED, Evaluation, Measures, ResultTable
from fedactors.papers.figures import Figure, highest, lowest
from fedactors.papers.flexible.flexible_claims import _in_order, rebounds
from fedactors.papers.results_text import grouped, shown
from fedactors.papers.verdicts import Claim, ClaimVerdict, Floor, succeeded

HOLDS, FAILS, NOT_LEARNT, TOO_CLOSE = ClaimVerdict
INF = float("inf")


def figure(*values):
    """Return a figure of some repeats."""
    return Figure(values)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (more("", 0.6, 0.5, 0.05), HOLDS),
        (more("", 0.6, 0.5, 0.2), FAILS),
        (more("", 0.5, 0.5), FAILS),
        (at_least("", 0.5, 0.5), HOLDS),
        (less("", 5, 10, 0.6), HOLDS),
        (less("", 6, 10, 0.6), FAILS),
        (at_most("", 6, 10, 0.6), HOLDS),
        (at_most("", INF, INF, 0.7), NOT_LEARNT),
        (less("", 3, INF), NOT_LEARNT),
        (more("", float("nan"), 0.1), NOT_LEARNT),
        (more("", figure(0.9, None), 0.1), NOT_LEARNT),
        (narrow("", [0.1, 0.15], 0.06), HOLDS),
        (narrow("", [0.1, 0.15, 0.2], 0.06), FAILS),
        (rising("", [1, 2, 3]), HOLDS),
        (rising("", [1, 2, 2]), FAILS),
        (rising("", [1, 2, INF]), NOT_LEARNT),
        (printed("", 203, 200, 5), HOLDS),
        (printed("", 206, 200, 5), FAILS),
        (counted("", 4, 6, 2 / 3, [figure(1.0)]), HOLDS),
        (counted("", 3, 6, 2 / 3, [figure(1.0)]), FAILS),
        (counted("", 6, 6, 2 / 3, [figure(None)]), NOT_LEARNT),
        (observed("", "", True, [Figure((1.0,), ("C 1: one round",))]), NOT_LEARNT),
    ],
)
def test_verdicts_of_single_figures(claim, verdict):
    assert claim.verdict is verdict


def test_the_interval_of_paired_differences_decides():
    """Differences .02, .03, .04: mean .03, sd .01; t of 2 degrees of freedom at 90 % is 2.92, half width .0169."""
    left, right = figure(0.52, 0.73, 0.94), figure(0.5, 0.7, 0.9)
    assert more("", left, right, 0.013).verdict is HOLDS
    assert more("", left, right, 0.014).verdict is TOO_CLOSE
    assert more("", left, right, 0.046).verdict is TOO_CLOSE
    assert more("", left, right, 0.047).verdict is FAILS
    assert "margin +0.03 +- 0.017, 3 seeds" in more("", left, right).ours
    assert narrow("", [left, right], 0.04).verdict is TOO_CLOSE
    assert narrow("", [left, right], 0.047).verdict is HOLDS


def test_arithmetic_goes_seed_by_seed_and_keeps_faults():
    a, b = Figure((1.0, 2.0), ("a",)), Figure((3.0, 5.0), ("b",))
    assert b - a == Figure((2.0, 3.0), ("b", "a"))
    assert 100 * a == a * 100 == Figure((100.0, 200.0), ("a",))
    assert 1 - a == Figure((0.0, -1.0), ("a",))
    assert (a / 0).missing
    assert abs(a - b).values == (2.0, 3.0)
    assert highest([a, b]) == Figure((3.0, 5.0), ("a", "b"))
    assert lowest([a, b]).values == (1.0, 2.0)
    assert highest([b, figure(None, 1.0)]).missing


def run(accuracy, rounds, t50=None):
    """Return the measures of a run that was at `accuracy` throughout."""
    curve = tuple(Evaluation(round, accuracy, 1.0) for round in range(1, rounds + 1))
    return Measures(accuracy, 5, t50, 0.0, None, None, 1.0, curve)


@pytest.mark.parametrize(("accuracy", "rounds", "learnt"), [(0.6, 20, True), (0.4, 20, False), (0.6, 19, False)])
def test_a_floor_is_an_accuracy_after_enough_rounds(accuracy, rounds, learnt):
    rows = [({"C": 1, "seed": 1}, run(0.8, 20)), ({"C": 2, "seed": 1}, run(accuracy, rounds))]
    table = ResultTable(rows, (Floor(0.5),))
    claim = more("", table.mean("accuracy", C=1), table.mean("accuracy", C=2))
    assert claim.verdict is (HOLDS if learnt else NOT_LEARNT)
    assert ("C 2, seed 1" in claim.ours) == (not learnt)


def test_a_floor_can_be_a_loss_and_be_meant_for_some_runs():
    rows = [({"method": name, "seed": 1}, run(0.1, 20)._replace(further={"loss": 0.4})) for name in ("FL", "PT")]
    table = ResultTable(rows, (Floor(0.5, "loss", most=True, where={"method": "FL"}), Floor(0.5)))
    assert table.faults(method="FL") == ()
    assert table.faults(method="PT") == ("method PT, seed 1: accuracy 0.1 is below 0.5",)


def test_tables_find_their_runs():
    table = ResultTable([({"C": 1, "seed": s}, run(a, 20, None if s else 7)) for s, a in ((0, 0.5), (1, 0.7))])
    assert table.mean("accuracy", C=1).mean == pytest.approx(0.6)
    assert table.mean("t50", C=1).missing
    with pytest.raises(KeyError, match="no run at"):
        table.mean("accuracy", C=2)
    with pytest.raises(KeyError, match='no measure "acuracy"'):
        table.mean("acuracy", C=1)


def test_of_a_run_that_diverged_no_rounds_and_no_seconds_are_averaged():
    table = ResultTable([({"C": 1, "seed": 0}, run(0.5, 20)), ({"C": 1, "seed": 1}, DIVERGED)])
    ((_, found),) = grouped(table)
    assert [shown(found, measure) for measure in ("t90", "sd20", "wall", "accuracy")] == ["-", "-", "-", "0.250"]
    assert all(table.mean(measure, C=1).missing for measure in ("t90", "sd20", "wall", "max_gt2"))


def test_an_experiment_succeeds_if_nothing_asserted_fails_and_something_holds():
    holds, fails, lost, close = (Claim("", "", verdict) for verdict in ClaimVerdict)
    assert succeeded([holds, close])
    assert succeeded([holds, fails._replace(asserted=False)])
    assert not succeeded([holds, fails])
    assert not succeeded([holds, lost])
    assert not succeeded([close])
    assert not succeeded([])


def test_the_margin_that_is_told_is_the_smallest():
    assert rising("", [1.0, 2.0, 2.25, 4.0]).margin.mean == 0.25
    assert narrow("", [0.30, 0.31, 0.29], 0.05).margin.mean == pytest.approx(0.03)


NEVER = float("inf")


@pytest.mark.parametrize(
    ("sooner", "later", "strict", "verdict", "ours"),
    [
        (8, NEVER, False, HOLDS, "8 <= never"),
        (NEVER, 8, False, FAILS, "never <= 8"),
        (8, NEVER, True, HOLDS, "8 < never"),
        (NEVER, 8, True, FAILS, "never < 8"),
        (8, 8, False, HOLDS, "8 <= 8; margin +0, no interval"),
        (8, 8, True, FAILS, "8.000 < 8.000; margin +0, no interval"),
    ],
)
def test_never_is_later_than_any_round(sooner, later, strict, verdict, ours):
    claim = _in_order("", Figure((sooner,)), Figure((later,)), strict=strict)
    assert (claim.verdict, claim.ours, claim.asserted) == (verdict, ours, True)


def test_rounds_that_are_never_reached_by_both_or_not_learnt_are_not_compared():
    assert _in_order("", Figure((NEVER,)), Figure((NEVER,)), strict=False).verdict is NOT_LEARNT
    assert _in_order("", Figure((8,)), Figure((NEVER,), ("diverged",))).verdict is NOT_LEARNT


def test_rebounds_are_asserted_of_late_arrivals():
    rows = [({"tau": tau, "reboot": name, "seed": 1}, run(0.5, 90)) for tau in (10, 30) for name in ("fast", "vanilla")]
    claims = rebounds(ResultTable(rows))
    assert [(claim.asserted, claim.verdict) for claim in claims] == [(False, HOLDS), (True, HOLDS)]


def test_every_experiment_about_models_has_a_floor():
    assert [name for all_ in (FULL, REDUCED) for name, one in all_.items() if not one.floors] == ["mixed-table3"]
