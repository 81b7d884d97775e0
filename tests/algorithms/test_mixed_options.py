"""The options of mixed federated learning: optimisers by hand, what is refused, and what travels."""

import pytest
import torch

from fedactors.algorithms.example_transfer import ExampleTransfer
from fedactors.algorithms.one_way import OneWay
from fedactors.algorithms.parallel_training import ParallelTraining
from fedactors.algorithms.two_way import TwoWay
from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import Round, TaskSetting
from fedactors.optim.server_optimizers import ServerAdam, ServerMomentum, Sgd
from tests.algorithms.harness import close, quadratic, vector
from tests.algorithms.test_mixed import mixed

ONE = torch.eye(1, dtype=torch.float64)


def test_optimisers_at_every_place():
    """SERVEROPT, CENTRALOPT and MERGEOPT by hand: one client, f = f_c = (y - 1)^2 / 2, x = 0, eta = 1/2, one step.

    Weighted gradients are -1/2. Client: D = .25. CENTRALOPT momentum, lr .4, two steps: m = -.5, y = .2; m = -.45 - .4
    = -.85, y = .54. SERVEROPT momentum, lr 2: Df = .5. MERGEOPT sgd, lr .5: x = .52. Next round m of SERVEROPT is kept.
    """
    gradients = [quadratic(ONE, vector(1.0))] * 2
    algorithm = ParallelTraining(
        central_optimizer=ServerMomentum(lr=0.4),
        central_steps=2,
        server_optimizer=ServerMomentum(lr=2.0),
        merge_optimizer=Sgd(lr=0.5),
    )
    run = mixed(gradients, algorithm, x=vector(0.0), lr=0.5)
    close(run.round(), vector(0.52))
    close(run.state["server.m"], vector(-0.25))
    adam = mixed(
        gradients, ParallelTraining(merge_optimizer=ServerAdam(lr=0.1, b1=0, b2=0, tau=0)), x=vector(0.0), lr=0.5
    )
    close(adam.round(), vector(0.1))
    fed_adam = mixed(gradients, OneWay(server_optimizer=ServerAdam(lr=0.1, b1=0, b2=0, tau=0)), x=vector(0.0), lr=0.5)
    close(fed_adam.round(), vector(0.1))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 0.1),
        ({"global_lr": 0.5}, 0.05),
        ({"server_optimizer": {"name": "sgd", "lr": 0.5}}, 0.05),
        ({"server_optimizer": {"name": "momentum", "lr": 0.5}}, 0.05),
        ({"server_optimizer": {"name": "adam", "lr": 0.001}}, 0.1),
        ({"server_optimizer": {"name": "yogi", "lr": 0.001}, "central_lr": 0.3}, 0.3),
    ],
)
@pytest.mark.parametrize("algorithm", [ParallelTraining, TwoWay])
def test_the_rate_of_central_steps_is_the_clients_times_that_of_the_server(algorithm, options, expected):
    """eta_c = eta eta_s with eta = 0.1; a rate of Adam, of another scale, is none of the central learner."""
    found = algorithm.model_validate(options).central_rate(Round(0, 1, 1.0, 0.1))
    assert found == pytest.approx(expected)


def test_what_cannot_work_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="only plain SGD allows"):
        TwoWay(central_optimizer="adam")
    with pytest.raises(ValueError, match=r"central_optimizer\.lr"):
        ParallelTraining(central_optimizer="adam", central_lr=0.1)
    with pytest.raises(ValueError, match=r"merge_optimizer\.lr"):
        TwoWay(merge_optimizer="adam", merge_lr=0.5)
    with pytest.raises(ScenarioError, match=r"server\.data"):
        OneWay().check(TaskSetting())
    OneWay(central_objective="spreadout").check(TaskSetting())


def test_payloads():
    """1-W and 2-W send the gradient too; who works when, in samples; ET sends K batches to each client."""
    setting = TaskSetting(clients=60, cohort=20, samples=3600, central=1000, batch=5, steps=2, sample_size=0.01)
    assert ParallelTraining().payload(setting)[:5] == (1, 1, 0, 200, 0)
    assert OneWay().payload(setting)[:5] == (2, 1, 200, 0, 0)
    assert TwoWay(central_batch=30, central_steps=4).payload(setting)[:5] == (2, 1, 0, 120, 0)
    assert ExampleTransfer().payload(setting)[:5] == (pytest.approx(1.1), 1, 0, 0, 0)
    for algorithm, work in ((ParallelTraining, (0, 2)), (OneWay, (1, 0)), (TwoWay, (0, 2)), (ExampleTransfer, (0, 0))):
        payload = algorithm(central_objective="spreadout").payload(setting)
        assert (payload.before, payload.during) == work  # evaluations of the regulariser
    assert ExampleTransfer(central_objective="spreadout").payload(setting).down == 1.0
