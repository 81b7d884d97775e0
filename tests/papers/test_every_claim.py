"""Every experiment asserts something, about cells that its grid has, whatever the figures are."""

import random

import pytest

from fedactors.papers.campaign.campaign_file import distinct
from fedactors.papers.catalogue import FULL, REDUCED
from fedactors.papers.experiment import DIVERGED, Evaluation, Measures, ResultTable
from fedactors.papers.flexible.flexible_limits import DISTANCES
from fedactors.papers.verdicts import ClaimVerdict, succeeded
from fedactors.study.study_cells import SEED

FURTHER = (
    "loss", "auc", "recall10", "spreadout", "loss_sd", "federated_accuracy", "central_accuracy", "max_gt2", "max_bt2",
    "half_loss", "half_spreadout", *DISTANCES, "trip_kib", "step_work",
)  # fmt: skip
ROUNDS = 2000


def made_up(draw, rounds=ROUNDS):
    """Return measures of a run that has learnt: any figures."""
    curve = tuple(Evaluation(n, draw.uniform(0.5, 0.9), draw.uniform(0.1, 1.0)) for n in range(1, rounds + 1))
    further = {name: draw.uniform(0.1, 0.9) for name in FURTHER}
    return Measures(
        draw.uniform(0.8, 0.9), draw.randint(20, 90), draw.randint(1, 50), draw.random(), draw.random(), draw.random(),
        1.0, curve, further,
    )  # fmt: skip


SOME = [made_up(random.Random(seed)) for seed in range(7)]


EXPERIMENTS = [("full", name) for name in distinct(FULL)] + [("reduced", name) for name in distinct(REDUCED)]


def table_of(experiment, runs):
    """Return a table with one of the `runs` at each place that the experiment's claims look at."""
    draw = random.Random(1)
    cells = list(experiment.cells())
    if experiment.tuned:
        places = [{axis: label for axis, label in cell.labels if axis != SEED} for cell in cells]
        best = experiment.best([(place, draw.choice(runs)) for place in places])
        cells = [cell for cell, place in zip(cells, places, strict=True) if place in best]
    return ResultTable([(dict(cell.labels), draw.choice(runs)) for cell in cells], experiment.floors)


@pytest.mark.parametrize(("size", "name"), EXPERIMENTS)
def test_every_experiment_asserts_something_about_its_cells(size, name):
    experiment = (FULL if size == "full" else REDUCED)[name]
    table = table_of(experiment, SOME)
    claims = experiment.claims(ResultTable(table.rows))  # without floors: figures are any
    texts = [claim.text for claim in claims]
    assert len(set(texts)) == len(texts)
    assert any(claim.asserted for claim in claims)
    assert {claim.verdict for claim in claims} <= set(ClaimVerdict) - {ClaimVerdict.NOT_LEARNT}


@pytest.mark.parametrize(("size", "name"), EXPERIMENTS)
def test_runs_that_diverged_are_judged_too(size, name):
    experiment = (FULL if size == "full" else REDUCED)[name]
    for runs in ([DIVERGED], [DIVERGED, *SOME]):
        table = table_of(experiment, runs)
        claims = experiment.claims(table)
        experiment.beside(table)
        if runs == [DIVERGED]:
            assert [claim.text for claim in claims if claim.holds] == []


@pytest.mark.parametrize(("size", "name"), EXPERIMENTS)
def test_after_one_round_nothing_holds_however_good_the_figures_are(size, name):
    experiment = (FULL if size == "full" else REDUCED)[name]
    table = table_of(experiment, [made_up(random.Random(seed), 1) for seed in range(7)])
    alike = {}  # the runs of a place: all seeds agree, so that no interval hides anything
    rows = [(at, alike.setdefault(str({**at, SEED: ""}), run)) for at, run in table.rows]
    claims = experiment.claims(ResultTable(rows, table.floors))
    assert [claim.text for claim in claims if claim.holds] == []
    assert not succeeded(claims)


@pytest.mark.parametrize("name", distinct(FULL))
def test_every_full_experiment_has_floors(name):
    assert FULL[name].floors
