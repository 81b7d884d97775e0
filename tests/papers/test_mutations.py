"""Algorithms broken on purpose: at least one asserted claim of each experiment fails, or says that nothing was learnt.

A row names an experiment, what is broken, the claim that finds it, and what is played smaller than in the experiment.
That claim is not refuted by the sound algorithm, played alike. Mutations are made in this process, in which the local
fleet trains; one seed, so that no interval can hide behind too few repeats.
"""

import dataclasses
import os
from pathlib import Path

import pytest
import torch

from fedactors.algorithms.data_sharing import DataSharing
from fedactors.algorithms.example_transfer import ExampleTransfer
from fedactors.algorithms.fed_ams import LocalAMS
from fedactors.algorithms.fed_lamb import LocalLAMB
from fedactors.algorithms.fed_sgd import FedSGD
from fedactors.algorithms.feddyn import FedDyn
from fedactors.algorithms.fsl_p import FSLp
from fedactors.algorithms.one_way import OneWay
from fedactors.algorithms.parallel_training import ParallelTraining
from fedactors.algorithms.participation import SchemeA, SchemeB, SchemeC
from fedactors.algorithms.scaffold import Scaffold
from fedactors.algorithms.server_learning import Incremental
from fedactors.algorithms.two_way import TwoWay
from fedactors.fleet import workers
from fedactors.learning.dissimilarity import dissimilarity
from fedactors.optim.server_optimizers import ServerAdam
from fedactors.papers import grid
from fedactors.papers.campaign.campaign_file import distinct
from fedactors.papers.catalogue import REDUCED
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


def one_way_gradient_zero(patch):
    """gc = 0: clients of 1-W hear nothing of the central loss."""
    patch.setattr(OneWay, "correction", lambda self, sent, kept: torch.zeros_like(sent["gc"]))


def two_way_gradients_zero(patch):
    """gc = gf = 0: 2-W is PT, with half of its step where eta_m = 1/2."""
    whole = TwoWay.aggregate

    def aggregate(self, state, sums, round, central):
        found = whole(self, state, sums, round, central)
        return {**found, "gc": torch.zeros_like(found["gc"]), "gf": torch.zeros_like(found["gf"])}

    patch.setattr(TwoWay, "aggregate", aggregate)


def central_part_zero(patch):
    """The central learner of PT gives nothing: only the clients' half of the loss is made small."""
    patch.setattr(
        ParallelTraining,
        "contribute",
        lambda self, state, round, central: {"central": torch.zeros_like(state["x"])},
    )


def transferred_examples_ignored(patch):
    """Clients of ET give the examples that they were sent no weight."""
    patch.setattr(ExampleTransfer, "central_share", 0.0)


def adam_is_sgd(patch):
    """The server steps along the mean update, whatever it keeps of those before."""
    patch.setattr(ServerAdam, "step", lambda self, x, gradient, slots: (x - gradient, slots))


def controls_zero(patch):
    """c - c_i = 0: SCAFFOLD is FL with its server step."""
    patch.setattr(Scaffold, "correction", lambda self, sent, kept: torch.zeros_like(sent["c"]))


def regulariser_forgets(patch):
    """r = 0 everywhere: FedDyn is FedProx."""
    patch.setattr(FedDyn, "keep", lambda self, trip: {"r": torch.zeros_like(trip.delta)})
    patch.setattr(
        FedDyn,
        "aggregate",
        lambda self, state, sums, round, central: {"x": state["x"] + sums["delta"], "r": state["r"]},
    )


def nothing_shared(patch):
    """DS ships no data: it is FL."""
    patch.setattr(DataSharing, "shares", False)


def server_is_no_client(patch):
    """The server of FSL-p takes no part: it is FL with its server step."""
    patch.setattr(FSLp, "_own", lambda self, x, round, central: None)


def ams_is_sgd(patch):
    """Clients of Fed-AMS step along the gradient, whatever its size."""
    patch.setattr(
        LocalAMS,
        "step",
        lambda self, params, grad, state, lr, number, layers: (params.add(grad, alpha=-lr), state),
    )


def nobody_averaged(patch):
    """The server of Fed-SGD keeps its model."""
    patch.setattr(FedSGD, "aggregate", lambda self, state, sums, round, central: {"x": state["x"]})


def gradient_travels_free(patch):
    """The gradient of 1-W is not charged for."""
    patch.setattr(OneWay, "payload", lambda self, setting: Payload())


def trust_ratio_one(patch):
    """Fed-LAMB's steps are Fed-AMS's."""
    patch.setattr(LocalLAMB, "scaled", lambda self, params, ratio, layers: ratio)


def trust_ratio_a_hundredth(patch):
    """Fed-LAMB at a rate of 0.03 takes the steps of Fed-AMS at 0.0003."""
    patch.setattr(LocalLAMB, "scaled", lambda self, params, ratio, layers: 0.01 * ratio)


def lamb_stands_still(patch):
    """Fed-LAMB's steps are zero."""
    patch.setattr(LocalLAMB, "scaled", lambda self, params, ratio, layers: torch.zeros_like(ratio))


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
HALF = ["server.rounds=30", "task.dataset.test_limit=1000"]
FEW = ["server.rounds=6", "task.dataset.test_limit=500"]
PAIR = ["server.rounds=80"]
QUICK = [
    ("mixed-table3", gradient_travels_free, "1-W: KiB of a round, without the layers behind the table", []),
]
AHEAD = "after round {}: fast is ahead (5, 10, 20 rounds later)"
SOONER = "tau_0 = 30: fast is more accurate than vanilla 5 rounds later"
RISE = "{}, |T| = {}, emerging: C - B is at least half of the paper's {} points"
COSTS = "(0.1, 0.1), tau_0 = 10: excluding costs in the first round"
SLOW = [
    ("fsl-fig1", server_learning_off, "C = 1: FSL is more accurate than DS", SHORT),
    ("fsl-fig1", nothing_shared, "C = 1: DS is more accurate than FL", SHORT),
    ("fsl-fig1-cifar", server_learning_off, "C = 1: FSL rises earlier than DS (T90)", []),
    ("fsl-fig1-emnist", server_learning_off, "C = 1: FSL rises earlier than DS (T90)", []),
    ("fsl-fig2", server_learning_off, "gamma = 1 is more accurate than 0.1", SHORT),
    ("fsl-fig5", server_learning_off, "C = 2, eta_l = 0.05: FSL is faster than FedDyn (T_0.5)", SHORT),
    ("fsl-fig6", server_learning_off, "C = 2: FSL is more accurate than DS", SHORT),
    ("fsl-fig7", server_learning_off, "C = 2: FSL is more accurate than FSL-p", SHORT),
    ("fsl-fig7", server_is_no_client, "C = 2: FSL-p is as accurate as DS within .02", SHORT),
    ("fsl-fig8", server_learning_off, "gamma = 1: FSL is more accurate than FSL-p", SHORT),
    ("fsl-fig9", server_learning_off, "C = 1: mean xi^2 is far below mean G^2", HALF),
    ("fsl-fig9", clients_look_alike, "C = 1: mean xi^2 is far below mean G^2", SHORT),
    ("fsl-table1", server_learning_off, "C = 2: FSL is faster than FedDyn (T_0.5)", []),
    ("fsl-table1", controls_zero, "C = 2: SCAFFOLD is more accurate than FL", []),
    ("fsl-table1", regulariser_forgets, "C = 2: FedDyn is more accurate than FL", []),
    ("fsl-conf-fig1", server_learning_off, "C = 2: DSL is more accurate than DS", SHORT),
    ("fsl-conf-fig2", server_learning_off, "n_0 = 100: FSL is more accurate than FL", SHORT),
    ("fsl-conf-fig3", server_learning_off, "FSL is more accurate than FL", []),
    ("fsl-conf-fig4", server_learning_off, "C = 2: DSL is more accurate than DS", SHORT),
    ("fsl-conf-fig5", server_learning_off, "FSL becomes more accurate with n_0", []),
    ("fsl-conf-fig6", server_learning_off, "E_s = 1 is as good as 5", []),
    ("flexible-table3", scheme_ignored, "NIID, |T| = 8: B is more accurate than A", []),
    ("flexible-table3-mnist", scheme_ignored, "B is more accurate than A", []),
    ("flexible-table3-emnist", scheme_ignored, "IID, |T| = 8: B is more accurate than A", SHORT),
    ("flexible-rr5", scheme_ignored, "inactive some, C: ends at its own limit", []),
    ("flexible-table4", boost_off, SOONER, []),
    ("flexible-table5", exclude_ignored, COSTS, []),
    ("flexible-fig5", boost_off, AHEAD.format(100), []),
    ("flexible-fig5", rate_not_reset, AHEAD.format(150), []),
    ("flexible-fig5-emerging", boost_off, AHEAD.format(100), []),
    ("flexible-table3-emerging", scheme_ignored, RISE.format("NIID equal", 8, 8), []),
    ("flexible-table3-mnist-emerging", scheme_ignored, RISE.format("NIID", 8, 6.9), []),
    ("flexible-table4-emerging", boost_off, SOONER, []),
    ("flexible-table5-emerging", exclude_ignored, COSTS, []),
    ("mixed-fig2", one_way_gradient_zero, "split: 1-W is ahead of PT by .08 (loss)", PAIR),
    ("mixed-fig2", two_way_gradients_zero, "split: 1-W and 2-W (1/2) are equal (loss)", PAIR),
    ("mixed-fig2", central_part_zero, "split: 1-W is ahead of PT by .08 (loss)", PAIR),
    ("mixed-fig2", transferred_examples_ignored, "split: ET and 1-W are equal (loss)", PAIR),
    ("mixed-fig3", one_way_gradient_zero, "1-W pushes movies apart as the baseline does", []),
    ("mixed-fig5", one_way_gradient_zero, "1-W learns both languages", []),
    ("mixed-fig7", one_way_gradient_zero, "1-W improves from |B_c| = 1 to 5", ["server.rounds=60"]),
    ("mixed-fig9", one_way_gradient_zero, "1-W: K = 2 is no worse than 1 (within .01)", ["server.rounds=60"]),
    ("mixed-fig11", one_way_gradient_zero, "all end at the same accuracy", []),
    ("mixed-fig12", adam_is_sgd, "1-W: FedAdam is ahead of SGD (loss)", []),
    ("mixed-fig10", one_way_gradient_zero, "1-W: K = 4 is as good as 2 within .01 (accuracy)", []),
    ("fedlamb-fig2", lamb_stands_still, "MLP, static: Fed-LAMB is ahead of Fed-SGD at round 5", FEW),
    ("fedlamb-fig3", trust_ratio_one, "Fed-LAMB ends higher than Fed-AMS", []),
    ("fedlamb-fig3-cnn", trust_ratio_a_hundredth, "Fed-LAMB ends much higher than Fed-SGD", []),
    ("fedlamb-fig3-cnn", ams_is_sgd, "Fed-LAMB ends higher than Fed-AMS", []),
    ("fedlamb-fig3-cnn", nobody_averaged, "Fed-LAMB ends much higher than Fed-SGD", []),
]


def test_every_experiment_has_a_mutation():
    assert {row[0] for row in (*QUICK, *SLOW)} == set(distinct(REDUCED))


@pytest.mark.parametrize(
    ("name", "mutate", "finds", "overrides"),
    [pytest.param(*row, id=f"{row[0]}-{row[1].__name__}") for row in QUICK]
    + [pytest.param(*row, id=f"{row[0]}-{row[1].__name__}", marks=pytest.mark.slow) for row in SLOW],
)
def test_a_broken_algorithm_is_found(name, mutate, finds, overrides, tmp_path, tmp_path_factory, monkeypatch):
    if "FEDACTORS_DATA" not in os.environ:
        pytest.skip("FEDACTORS_DATA names no folder with the data sets")
    sound = claims_of(name, overrides, tmp_path_factory.getbasetemp() / "reproduce")  # experiments share runs
    assert not sound[finds].refuted, sound[finds].ours
    mutate(monkeypatch)
    broken = claims_of(name, overrides, tmp_path)
    assert broken[finds].refuted, broken[finds].ours


def claims_of(name, overrides, folder):
    """Play an experiment with its first seed, and return its claims by their texts."""
    experiment = dataclasses.replace(REDUCED[name], seeds=REDUCED[name].seeds[:1])
    claims = experiment.claims(grid.play(experiment, SCENARIOS, folder, 1, lambda cell, found: None, overrides))
    print("\n".join(f"{claim.verdict.value:18} {claim.text}: {claim.ours}" for claim in claims))
    return {claim.text: claim for claim in claims}
