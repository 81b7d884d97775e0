"""Four verdicts, by hand: what holds, what fails, what was not learnt, and what is too close to tell."""

import pickle
from math import inf, nan
from random import Random

import pytest

from fedactors.papers.catalogue import FULL, REDUCED
from fedactors.papers.claims import all_more, at_least, at_most, counted, less, more, narrow, observed, printed, rising
from fedactors.papers.experiment import DIVERGED, Evaluation, Experiment, Measures, ResultTable
from fedactors.papers.figures import Figure, highest, lowest, share_of, span_of
from fedactors.papers.flexible.flexible_claims import all_equal, rebounds, table5_claims
from fedactors.papers.results_text import grouped, shown
from fedactors.papers.verdicts import Claim, ClaimVerdict, Floor, succeeded

HOLDS, FAILS, NOT_LEARNT, TOO_CLOSE = ClaimVerdict
ONE_SEED = {"fsl-fig1-cifar", "fsl-fig1-emnist", "flexible-table3-emnist"}  # reduced: nothing of them is asserted


def figure(*values):
    """Return a figure of some repeats."""
    return Figure(values)


def twice(*values):
    """Return figures of two seeds that agree."""
    return [Figure((value, value)) for value in values]


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (more("", *twice(0.6, 0.5), 0.05), HOLDS),
        (more("", *twice(0.6, 0.5), 0.2), FAILS),
        (more("", *twice(0.5, 0.5)), FAILS),
        (at_least("", *twice(0.5, 0.5)), HOLDS),
        (less("", *twice(5, 10), 0.6), HOLDS),
        (less("", *twice(6, 10), 0.6), FAILS),
        (at_most("", *twice(6, 10), 0.6), HOLDS),
        (at_most("", *twice(63, 90), 0.7), HOLDS),  # .7 x 90 is a little less than 63 in floating point
        (less("", *twice(63, 90), 0.7), FAILS),
        (less("", *twice(90, 63), 1 / 0.7), FAILS),
        (all_more("", twice(0.2, 0.3), 0.1), HOLDS),
        (all_more("", twice(0.05, 0.3), 0.1), FAILS),
        (all_more("", [figure(0.2, 0.3), figure(0.1, 0.4)], 0.1), TOO_CLOSE),
        (at_most("", inf, inf, 0.7), NOT_LEARNT),
        (less("", 3, inf), NOT_LEARNT),
        (less("", figure(3, 3), inf), NOT_LEARNT),
        (more("", nan, 0.1), NOT_LEARNT),
        (more("", figure(0.9, None), 0.1), NOT_LEARNT),
        (narrow("", twice(0.1, 0.15), 0.06), HOLDS),
        (narrow("", twice(0.1, 0.15, 0.2), 0.06), FAILS),
        (narrow("", [*twice(0.1), 0.15], 0.06), HOLDS),
        (rising("", twice(1, 2, 3)), HOLDS),
        (rising("", twice(1, 2, 2)), FAILS),
        (rising("", [*twice(1, 2), inf]), NOT_LEARNT),
        (printed("", *twice(203), 200, 5), HOLDS),
        (printed("", *twice(206), 200, 5), FAILS),
        (observed("", "", True, [figure(1.0)]), HOLDS),
        (observed("", "", False, [figure(1.0)]), FAILS),
        (observed("", "", True, [Figure((1.0,), ("C 1: one round",))]), NOT_LEARNT),
    ],
)
def test_verdicts_of_figures_without_spread(claim, verdict):
    assert claim.verdict is verdict


@pytest.mark.parametrize(
    "claim",
    [
        *[more("", 0.6, 0.5), less("", 5, 10), at_least("", 1, 0.5), at_least("", 1, 1), at_most("", 1, 2)],
        *[narrow("", [0.1, 0.15], 0.06), rising("", [1, 2, 3]), printed("", 203, 200, 5), more("", figure(0.6), 0.5)],
    ],
)
def test_one_seed_shows_no_claim(claim):
    assert claim.verdict is TOO_CLOSE
    assert "one seed" in claim.ours


@pytest.mark.parametrize(
    "claim",
    [more("", 0.4, 0.5), at_least("", 0.4, 0.5), narrow("", [1, 2], 1), rising("", [1, 1]), printed("", 206, 200, 5)],
)
def test_one_seed_can_refute_a_claim(claim):
    assert claim.verdict is FAILS


@pytest.mark.parametrize(
    "claim",
    [
        counted("", 0, 0, 0.75, []),
        counted("", 0, 0, 0.75, [figure(1.0)]),
        counted("", 6, 6, 0.5, []),
        observed("", "", True, []),
        narrow("", [], 1),
        narrow("", [0.1], 1),
        rising("", [0.1]),
        at_least("", share_of([], bool), 0.75),
        more("", highest([]), 0.1),
    ],
)
def test_without_anything_to_compare_nothing_is_learnt(claim):
    assert claim.verdict is NOT_LEARNT


def test_no_claim_of_any_experiment_is_judged_on_an_empty_table():
    for name, experiment in [*FULL.items(), *REDUCED.items()]:
        try:
            claims = experiment.claims(ResultTable([]))
        except KeyError:  # it names the run or the axis that is missing
            continue
        assert claims == [], name


def test_what_asserts_claims_has_seeds_for_intervals():
    assert {name for all_ in (FULL, REDUCED) for name, one in all_.items() if len(one.seeds) < 2} <= ONE_SEED


@pytest.mark.parametrize(
    ("count", "of", "verdict"), [(5, 5, HOLDS), (4, 4, TOO_CLOSE), (1, 1, TOO_CLOSE), (0, 4, TOO_CLOSE), (0, 5, FAILS)]
)
def test_a_share_of_repeats_has_an_exact_interval(count, of, verdict):
    """All of five of an event that is as likely as not: chance 1/32, below 5 %; of four: 1/16. Failures the same."""
    assert counted("", count, of, 0.5, [figure(1.0)]).verdict is verdict


def test_a_share_that_is_not_learnt_is_not_judged():
    assert counted("", 6, 6, 0.5, [figure(None)]).verdict is NOT_LEARNT


def test_shares_of_places_go_seed_by_seed():
    places = [figure(1.0, -1.0), figure(2.0, 3.0), Figure((-1.0, 1.0), ("fault",))]
    assert share_of(places, lambda value: value > 0) == Figure((2 / 3, 2 / 3), ("fault",))
    assert share_of([*places, figure(None, 1.0)], lambda value: value > 0).values == (None, 3 / 4)


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


def test_the_best_of_four_that_are_alike_is_seldom_above_their_line():
    """Three seeds of normal numbers around the line: one is above it in 5 % of cases, the best of four in 15."""
    random, cases = Random(1), 2_000
    held = {1: 0, 4: 0}
    for _ in range(cases):
        four = [figure(*(random.gauss(0.0, 1.0) for _ in range(3))) for _ in range(4)]
        for chosen_from in held:
            held[chosen_from] += more("", highest(four), 0.0, chosen_from=chosen_from).holds
    assert held[4] / cases < 0.06 < 0.14 < held[1] / cases


def test_a_span_goes_seed_by_seed():
    """Of (1, 5) and (2, 1): 1 with the first seed and 4 with the second; the means 3 and 1.5 are 1.5 apart."""
    assert span_of([figure(1.0, 5.0), figure(2.0, 1.0)]) == figure(1.0, 4.0)
    assert span_of([figure(1.0, None), figure(2.0, 1.0)]) == figure(1.0, None)


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


def test_a_run_alone_does_not_stand_for_every_seed():
    assert (figure(1.0, 2.0, 3.0) - 1).values == (0.0, 1.0, 2.0)
    with pytest.raises(ValueError, match="figures of 3 and of 1 repeats make no pairs"):
        more("", figure(0.6, 0.7, 0.8), figure(0.5))


def run(accuracy, rounds, t50=None, loss=1.0):
    """Return the measures of a run that was at `accuracy` throughout."""
    curve = tuple(Evaluation(round, accuracy, loss) for round in range(1, rounds + 1))
    return Measures(accuracy, 5, t50, 0.0, None, None, 1.0, curve)


@pytest.mark.parametrize(("accuracy", "rounds", "learnt"), [(0.6, 20, True), (0.4, 20, False), (0.6, 19, False)])
def test_a_floor_is_an_accuracy_after_enough_rounds(accuracy, rounds, learnt):
    rows = [({"C": c, "seed": s}, run(*one)) for c, one in ((1, (0.8, 20)), (2, (accuracy, rounds))) for s in (1, 2)]
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
    assert rising("", [1.0, 2.0, 2.25, 4.0]).margin == (0.25, None, 1)
    assert narrow("", [0.30, 0.31, 0.29], 0.05).margin.mean == pytest.approx(0.03)


def rebounding(*rounds):
    """Return runs whose accuracy is back so many rounds after round 30; None: never."""
    return [
        Measures(
            0.5, 5, None, 0.0, None, None, 1.0,
            tuple(Evaluation(n, 0.5 if n == 30 or (one and n >= 30 + one) else 0.4, 1.0) for n in range(1, 91)),
        )
        for one in rounds
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fast", "vanilla", "verdict"),
    [
        ((8, 9, 10), (11, 12, 13), HOLDS),
        ((8, 9, 10), (8, 9, 10), HOLDS),
        ((11, 12, 13), (8, 9, 10), FAILS),
        ((1, 9, 30), (2, 13, 29), TOO_CLOSE),
        ((8,), (9,), TOO_CLOSE),
        ((8, 9, 10), (11, 12, None), NOT_LEARNT),
        ((8, 9, 10), (None, None, None), NOT_LEARNT),
        ((None, 9, 10), (11, 12, 13), NOT_LEARNT),
    ],
)
def test_rounds_are_compared_seed_by_seed_and_never_is_no_number(fast, vanilla, verdict):
    runs = {"fast": rebounding(*fast), "vanilla": rebounding(*vanilla)}
    rows = [({"tau": 30, "reboot": name, "seed": s}, one) for name in runs for s, one in enumerate(runs[name])]
    (claim,) = rebounds(ResultTable(rows))
    assert claim.verdict is verdict
    never = sum(one is None for one in (fast + vanilla))
    assert (f"not measured in {never} of 3 repeats" in claim.ours) == bool(never)


def test_rebounds_are_asserted_of_late_arrivals():
    rows = [({"tau": tau, "reboot": name, "seed": 1}, run(0.5, 90)) for tau in (10, 30) for name in ("fast", "vanilla")]
    assert [claim.asserted for claim in rebounds(ResultTable(rows))] == [False, True]


def test_losses_that_never_cross_are_in_no_order():
    rows = [
        ({"a": a, "tau": tau, "option": option, "seed": seed}, run(0.5, 180, loss=loss))
        for a in (0.1, 1.0) for tau in (10, 50) for seed in (1, 2)
        for option, loss in (("exclude", 1.0), ("include", 0.5))
    ]  # fmt: skip
    claims = table5_claims(ResultTable(rows))
    orders = [claim for claim in claims if "later" in claim.text and "cross" in claim.text]
    assert [claim.verdict for claim in orders] == [NOT_LEARNT] * 3
    assert all(claim.asserted for claim in claims)


@pytest.mark.parametrize(("losses", "verdict"), [((1.0, 1.0, 1.0), HOLDS), ((1.0, 1.0, 2.0), FAILS)])
def test_curves_are_equal_or_not(losses, verdict):
    table = ResultTable([({"scheme": s, "seed": 1}, run(0.5, 9, loss=x)) for s, x in zip("ABC", losses, strict=True)])
    assert all_equal(table, "").verdict is verdict


def test_losses_that_are_no_numbers_are_not_equal():
    table = ResultTable([({"scheme": scheme, "seed": 1}, run(0.5, 9, loss=nan)) for scheme in "ABC"])
    assert all_equal(table, "").verdict is NOT_LEARNT


@pytest.mark.parametrize("worse", [nan, inf, None, 0.4])
def test_what_is_no_number_wins_over_no_label_of_a_tuned_axis(worse):
    experiment = Experiment("", "", [], tuned=("rate",), best_by="accuracy")
    rows = [({"rate": rate, "seed": 1}, run(found, 1)) for rate, found in ((0.1, worse), (0.2, 0.5))]
    assert experiment.best(rows) == [{"rate": 0.2}]
    assert experiment.best(rows[:1]) == [{"rate": 0.1}]


def test_every_experiment_about_models_has_a_floor():
    assert [name for all_ in (FULL, REDUCED) for name, one in all_.items() if not one.floors] == ["mixed-table3"]


def test_what_is_kept_of_a_run_that_diverged_comes_back_from_another_process():
    assert pickle.loads(pickle.dumps(DIVERGED)) == DIVERGED
