"""After one round nothing has been learnt, and no claim about models may hold."""

import dataclasses
import os
from pathlib import Path

import pytest

from fedactors.papers import grid
from fedactors.papers.catalogue import REDUCED
from fedactors.papers.experiment import ResultTable
from fedactors.papers.verdicts import succeeded
from fedactors.study.study_cells import SEED

SCENARIOS = Path(__file__).parents[2] / "scenarios"
QUICK = ("fsl-conf-fig6",)
NO_MODELS = ("mixed-table3",)  # what one round of a client costs


def names():
    """Return each experiment once: some figures share one."""
    distinct = {id(experiment): name for name, experiment in reversed(REDUCED.items())}
    return [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in reversed(distinct.values())
        if name not in NO_MODELS
    ]


def twice(table):
    """Return a table with each run as that of two seeds: with one seed no claim can hold."""
    rows = [({**at, SEED: seed}, run) for at, run in table.rows for seed in (1, 2)]
    return ResultTable(rows, table.floors, table.left_out)


@pytest.mark.parametrize("name", names())
def test_after_one_round_no_claim_holds(name, tmp_path_factory):
    if "FEDACTORS_DATA" not in os.environ:
        pytest.skip("FEDACTORS_DATA names no folder with the data sets")
    out = tmp_path_factory.getbasetemp() / "one-round"  # experiments share runs
    experiment = dataclasses.replace(REDUCED[name], seeds=REDUCED[name].seeds[:1])
    played = grid.play(experiment, SCENARIOS, out, 1, lambda cell, found: None, ["server.rounds=1"])
    claims = experiment.claims(twice(played))
    assert claims
    assert [claim for claim in claims if claim.holds] == []
    assert not succeeded(claims)
