"""Rates by round: against torch.optim.lr_scheduler, with a warm-up, and what is refused."""

import warnings

import pytest
import torch
from torch.optim import lr_scheduler

from fedactors.algorithms.fedavg import FedAvg
from fedactors.learning.algorithm import Round
from fedactors.learning.server_rate import in_round
from fedactors.optim.schedule import (
    ConstantRate,
    CosineRate,
    ExponentialRate,
    MultiStepRate,
    PolynomialRate,
    RuanRate,
    StaircaseRate,
    StepRate,
)
from fedactors.optim.server_optimizers import ServerAdam

LR = 0.3
PAIRS = {
    "constant": (ConstantRate(lr=LR), lambda o: lr_scheduler.ConstantLR(o, factor=1.0)),
    "exponential": (ExponentialRate(lr=LR, gamma=0.93), lambda o: lr_scheduler.ExponentialLR(o, 0.93)),
    "step": (StepRate(lr=LR, step_size=7), lambda o: lr_scheduler.StepLR(o, 7)),
    "multistep": (
        MultiStepRate(lr=LR, milestones=(3, 4, 20), gamma=0.5), lambda o: lr_scheduler.MultiStepLR(o, [3, 4, 20], 0.5),
    ),
    "cosine": (CosineRate(lr=LR, t_max=30), lambda o: lr_scheduler.CosineAnnealingLR(o, 30)),
    "cosine, twice": (
        CosineRate(lr=LR, t_max=9, eta_min=0.01), lambda o: lr_scheduler.CosineAnnealingLR(o, 9, eta_min=0.01),
    ),
    "polynomial": (PolynomialRate(lr=LR, total_iters=25), lambda o: lr_scheduler.PolynomialLR(o, 25)),
    "squared": (PolynomialRate(lr=LR, total_iters=40, power=2.0), lambda o: lr_scheduler.PolynomialLR(o, 40, 2.0)),
}  # fmt: skip


def rates_of_torch(make, rounds):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=LR)
    scheduler = make(optimizer)
    found = []
    for _ in range(rounds):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_rates_are_those_of_torch(name):
    ours, theirs = PAIRS[name]
    assert [ours.at(round) for round in range(1, 31)] == pytest.approx(rates_of_torch(theirs, 30), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_a_warm_up_is_a_linear_schedule_before_it(name):
    ours, theirs = PAIRS[name]
    warm = ours.model_copy(update={"warm_up": 4})

    def sequence(optimizer):
        rising = lr_scheduler.LinearLR(optimizer, start_factor=1 / 5, end_factor=1.0, total_iters=4)
        return lr_scheduler.SequentialLR(optimizer, [rising, theirs(optimizer)], [4])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch steps a scheduler inside another one
        wanted = rates_of_torch(sequence, 25)
    assert [warm.at(round) for round in range(1, 26)] == pytest.approx(wanted, rel=1e-7, abs=1e-12)


def test_the_length_of_a_schedule_is_that_of_the_run_without_its_warm_up():
    assert CosineRate(lr=LR, warm_up=5).lasting(50).t_max == 45
    assert PolynomialRate(lr=LR).lasting(50).total_iters == 50
    assert CosineRate(lr=LR, t_max=7).lasting(50).t_max == 7


@pytest.mark.parametrize(
    ("schedule", "rounds", "says"),
    [
        (CosineRate(lr=LR, t_max=10), 11, "round 11 would be 0; give eta_min above 0, or t_max of at least 11"),
        (CosineRate(lr=LR, t_max=10, warm_up=3), 20, "give eta_min above 0, or t_max of at least 17"),
        (PolynomialRate(lr=LR, total_iters=10), 12, "round 12 would be 0"),
        (ExponentialRate(lr=LR, gamma=0.1), 1000, "round 1000 would be 0"),
    ],
)  # fmt: skip
def test_a_rate_of_zero_is_a_problem(schedule, rounds, says):
    assert says in schedule.lasting(rounds).problem(rounds)
    assert not schedule.lasting(rounds).problem(10)
    if isinstance(schedule, CosineRate):  # what is advised is enough, and no less is
        least = int(says.rpartition(" ")[2])
        assert not schedule.model_copy(update={"t_max": least}).problem(rounds)
        assert schedule.model_copy(update={"t_max": least - 1}).problem(rounds)


def test_a_staircase_warms_up_to_its_first_rate():
    assert [StaircaseRate(lr=1.0, warm_up=1).at(round) for round in (1, 2, 3, 4)] == [0.5, 1.0, 1 / 2, 1 / 3]


def test_the_rate_of_the_theorem_by_hand():
    """E = 5, mu = 0.1, gamma = 35, of each device's 5 updates 4 expected: 16 * 5 / (0.1 * 4) = 200, over 5 tau + 35.

    Rounds 1, 2, 3, 33: 200 over 40, 45, 50, 200. With all updates expected 16 / mu = 160 over the same.
    """
    some = RuanRate(mu=0.1, gamma=35, local_updates=5, expected_updates=4)
    assert [some.at(round) for round in (1, 2, 3, 33)] == pytest.approx([5, 200 / 45, 4, 1])
    every = RuanRate(mu=0.1, gamma=35, local_updates=5)
    assert [every.at(round) for round in (1, 33)] == pytest.approx([4, 0.8])


def test_the_rate_of_the_server_takes_the_place_of_the_algorithms():
    facts = Round(0, 1, 1.0, 0.1, server_lr=0.25)
    assert in_round(FedAvg(), facts).global_lr == 0.25
    adam = in_round(FedAvg(server_optimizer=ServerAdam(b1=0.5)), facts).server_optimizer
    assert (adam.lr, adam.b1) == (0.25, 0.5)
    assert in_round(FedAvg(), facts._replace(server_lr=None)).global_lr == 1.0
