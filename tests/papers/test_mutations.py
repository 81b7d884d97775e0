"""Algorithms broken on purpose: at least one asserted claim of each experiment fails, or says that nothing was learnt.

A row names an experiment, what is broken, and words of the claim that finds it. Mutations are made in this process, in
which the local fleet trains; one seed, so that no interval can hide behind too few repeats.
"""

import dataclasses
import os
from pathlib import Path

import pytest
import torch

from fedactors.algorithms.fed_lamb import LocalLAMB
from fedactors.algorithms.one_way import OneWay
from fedactors.algorithms.participation import SchemeA, SchemeB, SchemeC
from fedactors.algorithms.server_learning import Incremental
from fedactors.algorithms.two_way import TwoWay
from fedactors.papers import grid
from fedactors.papers.catalogue import REDUCED
from fedactors.papers.verdicts import succeeded
from fedactors.plan import Payload
from fedactors.simulation.objective_state import Objective

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def server_learning_off(patch):
    """The server's rate is 0: FSL is FL, DSL is DS."""
    patch.setattr(Incremental, "server_rate", lambda self, round: 0.0)


def scheme_ignored(patch):
    """Schemes A and C weigh as B does."""
    for scheme in (SchemeA, SchemeC):
        patch.setattr(scheme, "weigh", lambda self, updates, members: SchemeB().weigh(updates, members))


def boost_off(patch):
    """A device that arrives has no raised weight: fast reboot is vanilla."""
    patch.setattr(Objective, "_factors", lambda self, plan: {})


def rate_not_reset(patch):
    """The rate goes on falling after the objective has shifted."""
    whole = Objective.at
    patch.setattr(
        Objective, "at", lambda self, plan, decide: whole(self, plan, decide)._replace(round=plan.version + 1)
    )


def central_gradient_zero(patch):
    """gc = 0: clients hear nothing of the central loss."""
    for algorithm in (OneWay, TwoWay):
        patch.setattr(algorithm, "correction", lambda self, sent, kept: torch.zeros_like(sent["gc"]))


def gradient_travels_free(patch):
    """The gradient of 1-W is not charged for."""
    patch.setattr(OneWay, "payload", lambda self, setting: Payload())


def trust_ratio_one(patch):
    """Fed-LAMB's steps are Fed-AMS's."""
    patch.setattr(LocalLAMB, "scaled", lambda self, params, ratio, layers: ratio)


QUICK = [
    ("mixed-table3", gradient_travels_free, "1-W: KiB"),
]
SLOW = [
    ("fsl-conf-fig6", server_learning_off, "E_s = 1"),
    ("flexible-table3-mnist", scheme_ignored, "B is more accurate than A"),
    ("fsl-conf-fig3", server_learning_off, "FSL is more accurate than FL"),
    ("fsl-conf-fig5", server_learning_off, "FSL becomes more accurate"),
    ("fsl-table1", server_learning_off, "FSL is faster than FedDyn"),
    ("flexible-rr5", scheme_ignored, "ends at its own limit"),
    ("flexible-table4", boost_off, "fast is more accurate than vanilla"),
    ("flexible-fig5", boost_off, "fast is ahead"),
    ("flexible-fig5-emerging", boost_off, "fast is ahead"),
    ("flexible-table3-emerging", scheme_ignored, "C - B is at least half"),
    ("flexible-table4-emerging", boost_off, "fast is more accurate than vanilla"),
    ("flexible-fig5", rate_not_reset, "fast is ahead"),
    ("mixed-fig3", central_gradient_zero, "1-W"),
    ("fedlamb-fig3", trust_ratio_one, "Fed-LAMB ends higher than Fed-AMS"),
]


@pytest.mark.parametrize(
    ("name", "mutate", "finds"),
    [pytest.param(*row, id=f"{row[0]}-{row[1].__name__}") for row in QUICK]
    + [pytest.param(*row, id=f"{row[0]}-{row[1].__name__}", marks=pytest.mark.slow) for row in SLOW],
)
def test_a_broken_algorithm_is_found(name, mutate, finds, tmp_path, monkeypatch):
    if "FEDACTORS_DATA" not in os.environ:
        pytest.skip("FEDACTORS_DATA names no folder with the data sets")
    mutate(monkeypatch)
    experiment = dataclasses.replace(REDUCED[name], seeds=REDUCED[name].seeds[:1])
    claims = experiment.claims(grid.play(experiment, SCENARIOS, tmp_path, 1, lambda cell, found: None, []))
    found = [claim for claim in claims if claim.refuted]
    print("\n".join(f"{claim.verdict.value:18} {claim.text}: {claim.ours}" for claim in claims))
    assert not succeeded(claims)
    assert any(finds in claim.text for claim in found), [claim.text for claim in found]
