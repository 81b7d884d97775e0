"""Algorithms broken on purpose: at least one asserted claim of each experiment fails, or says that nothing was learnt.

A row names an experiment, what is broken, and words of the claim that finds it. Mutations are made in this process, in
which the local fleet trains; one seed, so that no interval can hide behind too few repeats. A row with overrides is
played smaller than the experiment, also by the sound algorithm, with which the claim holds there. The others are played
as they are: that the sound algorithm passes them is what `test_reproduce` shows.

Every experiment has a row, or is in `UNHARMED` with the reason.
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
from fedactors.fleet import workers
from fedactors.learning.dissimilarity import dissimilarity
from fedactors.papers import grid
from fedactors.papers.campaign.campaign_file import distinct
from fedactors.papers.catalogue import REDUCED
from fedactors.papers.verdicts import succeeded
from fedactors.plan import Payload
from fedactors.simulation.objective_state import Objective, Verdict

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


def trust_ratio_a_hundredth(patch):
    """Fed-LAMB at a rate of 0.03 takes the steps of Fed-AMS at 0.0003."""
    patch.setattr(LocalLAMB, "scaled", lambda self, params, ratio, layers: 0.01 * ratio)


def exclude_ignored(patch):
    """A device that departs stays in the objective, whatever was decided."""
    whole = Objective._leave

    def leave(self, client, done, decide, *, sent):
        return whole(self, client, done, lambda *asked: Verdict(False), sent=sent)

    patch.setattr(Objective, "_leave", leave)


def clients_look_alike(patch):
    """The dissimilarity of clients, G^2, is not measured."""
    patch.setattr(workers, "dissimilarity", lambda sums, own: {**dissimilarity(sums, own), "g2": 0.0})


SHORT = ["server.rounds=60", "task.dataset.test_limit=1000"]
QUICK = [
    ("mixed-table3", gradient_travels_free, "1-W: KiB", []),
]
SLOW = [
    ("fsl-fig1", server_learning_off, "C = 1: FSL is more accurate than DS", SHORT),
    ("fsl-fig2", server_learning_off, "gamma = 1 is more accurate than 0.1", SHORT),
    ("fsl-fig5", server_learning_off, "C = 2, eta_l = 0.05: FSL is faster than FedDyn", SHORT),
    ("fsl-fig6", server_learning_off, "C = 2: FSL is more accurate than DS", SHORT),
    ("fsl-fig7", server_learning_off, "C = 2: FSL is more accurate than FSL-p", SHORT),
    ("fsl-fig8", server_learning_off, "gamma = 1: FSL is more accurate than FSL-p", SHORT),
    ("fsl-fig9", clients_look_alike, "C = 1: mean xi^2 is far below mean G^2", SHORT),
    ("fsl-table1", server_learning_off, "FSL is faster than FedDyn", []),
    ("fsl-conf-fig1", server_learning_off, "C = 2: DSL is more accurate than DS", SHORT),
    ("fsl-conf-fig2", server_learning_off, "n_0 = 100: FSL is more accurate than FL", SHORT),
    ("fsl-conf-fig3", server_learning_off, "FSL is more accurate than FL", []),
    ("fsl-conf-fig4", server_learning_off, "C = 2: DSL is more accurate than DS", SHORT),
    ("fsl-conf-fig5", server_learning_off, "FSL becomes more accurate", []),
    ("fsl-conf-fig6", server_learning_off, "E_s = 1", []),
    ("flexible-table3", scheme_ignored, "NIID, |T| = 8: B is more accurate than A", []),
    ("flexible-table3-mnist", scheme_ignored, "B is more accurate than A", []),
    ("flexible-rr5", scheme_ignored, "ends at its own limit", []),
    ("flexible-table4", boost_off, "fast is more accurate than vanilla", []),
    ("flexible-table5", exclude_ignored, "excluding costs in the first round", []),
    ("flexible-fig5", boost_off, "fast is ahead", []),
    ("flexible-fig5", rate_not_reset, "fast is ahead", []),
    ("flexible-fig5-emerging", boost_off, "fast is ahead", []),
    ("flexible-table3-emerging", scheme_ignored, "C - B is at least half", []),
    ("flexible-table3-mnist-emerging", scheme_ignored, "C - B is at least half", []),
    ("flexible-table4-emerging", boost_off, "fast is more accurate than vanilla", []),
    ("flexible-table5-emerging", exclude_ignored, "excluding costs in the first round", []),
    ("mixed-fig2", central_gradient_zero, "split: 1-W is ahead of PT by .08", ["server.rounds=80"]),
    ("mixed-fig3", central_gradient_zero, "1-W", []),
    ("mixed-fig5", central_gradient_zero, "1-W learns both languages", []),
    ("mixed-fig7", central_gradient_zero, "1-W improves from |B_c| = 1 to 5", ["server.rounds=60"]),
    ("mixed-fig9", central_gradient_zero, "1-W: K = 2 is no worse than 1", ["server.rounds=60"]),
    ("mixed-fig11", central_gradient_zero, "all end at the same accuracy", []),
    ("mixed-fig12", central_gradient_zero, "1-W with FedAdam is about the baseline", []),
    ("mixed-fig10", central_gradient_zero, "1-W: K = 4", []),
    ("fedlamb-fig3", trust_ratio_one, "Fed-LAMB ends higher than Fed-AMS", []),
    ("fedlamb-fig3-cnn", trust_ratio_a_hundredth, "Fed-LAMB ends much higher than Fed-SGD", []),
]
UNHARMED = {
    "fsl-fig1-cifar": "its claims are reported, none is asserted: one seed, and a dense network",
    "fsl-fig1-emnist": "its claims are reported, none is asserted: one seed, and a dense network",
    "flexible-table3-emnist": "its claims are reported, none is asserted: one seed",
    "fedlamb-fig2": "the one claim that is asserted, Fed-LAMB ahead of Fed-SGD at round 5, is true of Fed-AMS as well",
}


def test_every_experiment_has_a_mutation_or_a_reason_for_having_none():
    mutated = {row[0] for row in (*QUICK, *SLOW)}
    assert mutated | set(UNHARMED) == set(distinct(REDUCED))
    assert not mutated & set(UNHARMED)


@pytest.mark.parametrize(
    ("name", "mutate", "finds", "overrides"),
    [pytest.param(*row, id=f"{row[0]}-{row[1].__name__}") for row in QUICK]
    + [pytest.param(*row, id=f"{row[0]}-{row[1].__name__}", marks=pytest.mark.slow) for row in SLOW],
)
def test_a_broken_algorithm_is_found(name, mutate, finds, overrides, tmp_path, monkeypatch):
    if "FEDACTORS_DATA" not in os.environ:
        pytest.skip("FEDACTORS_DATA names no folder with the data sets")
    if overrides:
        sound = claims_of(name, overrides, tmp_path / "sound")
        assert any(finds in claim.text and claim.holds for claim in sound)
    mutate(monkeypatch)
    claims = claims_of(name, overrides, tmp_path / "broken")
    found = [claim for claim in claims if claim.refuted]
    assert not succeeded(claims)
    assert any(finds in claim.text for claim in found), [claim.text for claim in found]


def claims_of(name, overrides, folder):
    """Play an experiment with its first seed."""
    experiment = dataclasses.replace(REDUCED[name], seeds=REDUCED[name].seeds[:1])
    claims = experiment.claims(grid.play(experiment, SCENARIOS, folder, 1, lambda cell, found: None, overrides))
    print("\n".join(f"{claim.verdict.value:18} {claim.text}: {claim.ours}" for claim in claims))
    return claims
