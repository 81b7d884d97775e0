"""Optimisers of the server against hand-worked steps and torch.optim, and FedAvg with them (FedAdam and its kin)."""

import pytest
import torch
from pydantic import TypeAdapter

from fedactors import registry
from fedactors.algorithms.fedavg import FedAvg
from fedactors.optim.server_optimizers import (
    Adagrad,
    ServerAdam,
    ServerMomentum,
    ServerOptimizer,
    Sgd,
    Yogi,
    joined,
    split,
)
from tests.algorithms.harness import Federation, close, noisy, problem, vector

X = vector(1.0, -2.0, 0.5, 3.0)
ALL = [Sgd(lr=0.7), ServerMomentum(lr=0.2), ServerAdam(), ServerAdam(bias_correction=True), Yogi(), Adagrad(b1=0.5)]


def played(optimizer, gradients, x=X):
    slots = optimizer.start(x)
    for gradient in gradients:
        x, slots = optimizer.step(x, gradient, slots)
    return x, slots


def test_two_steps_by_hand():
    """x = 1, g = 2 then -1, lr = 0.1, all decays 0.5, tau = 1.

    momentum: m = 2, 0; x = 0.8, 0.8.
    adam: m = 1, 0; v = 0.5 + 2 = 2.5, then 1.25 + 0.5; x = 1 - 0.1 / (sqrt 2.5 + 1), then unchanged as m = 0.
    yogi: v = 1 - 0.5 * 4 * sign(1 - 4) = 3, then 3 - 0.5 * 1 * sign(3 - 1) = 2.5; m as adam's.
    adagrad: v = 1 + 4 = 5, then 6; b1 = 0: m = 2, -1.
    """
    one, gradients = vector(1.0), [vector(2.0), vector(-1.0)]
    options = {"lr": 0.1, "b1": 0.5, "tau": 1.0}
    x, slots = played(ServerMomentum(lr=0.1, beta=0.5), gradients, one)
    close(x, vector(0.8))
    close(slots["m"], vector(0.0))
    x, slots = played(ServerAdam(b2=0.5, **options), gradients, one)
    close(x, vector(1 - 0.1 / (2.5**0.5 + 1)))
    close(slots["v"], vector(1.75))
    x, slots = played(Yogi(b2=0.5, **options), gradients, one)
    close(x, vector(1 - 0.1 / (3**0.5 + 1)))
    close(slots["v"], vector(2.5))
    x, slots = played(Adagrad(lr=0.1, tau=1.0), gradients, one)
    close(x, vector(1 - 0.2 / (5**0.5 + 1) + 0.1 / (6**0.5 + 1)))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Sgd(lr=0.3), lambda p: torch.optim.SGD(p, lr=0.3)),
        (ServerMomentum(lr=0.3, beta=0.8), lambda p: torch.optim.SGD(p, lr=0.3, momentum=0.8)),
        (
            ServerAdam(lr=0.3, b1=0.8, b2=0.95, tau=1e-6, bias_correction=True),
            lambda p: torch.optim.Adam(p, lr=0.3, betas=(0.8, 0.95), eps=1e-6),
        ),
        (
            Adagrad(lr=0.3, tau=1e-5),
            lambda p: torch.optim.Adagrad(p, lr=0.3, eps=1e-5, initial_accumulator_value=1e-10),
        ),
    ],
    ids=["sgd", "momentum", "adam", "adagrad"],
)
def test_where_definitions_coincide_it_is_torch_optim(ours, theirs):
    gradient = noisy(problem(1)[0][0], 1)
    parameter = torch.nn.Parameter(X.clone())
    optimizer, (x, slots) = theirs([parameter]), (X, ours.start(X))
    for step in range(8):
        parameter.grad = gradient(parameter.detach(), step)
        optimizer.step()
        x, slots = ours.step(x, gradient(x, step), slots)
    close(x, parameter.detach(), rtol=1e-9)


def test_adam_with_a_frozen_spread_is_fedavg():
    """I-M8: b1 = 0, b2 = 1, v = tau^2: FedAvg with eta_g = eta_s / (2 tau)."""
    gradients = [noisy(g, k) for k, g in enumerate(problem(3)[0])]
    adam = Federation(FedAvg(server_optimizer=ServerAdam(lr=0.02, b1=0.0, b2=1.0, tau=0.01)), X, gradients, steps=3)
    plain = Federation(FedAvg(global_lr=0.02 / (2 * 0.01)), X, gradients, steps=3)
    for cohort in ([0, 1, 2], [1], [], [0, 2]):
        close(adam.round(cohort), plain.round(cohort))


def test_adam_takes_the_sign_of_the_update():
    """I-M8: bias-corrected with tau -> 0 in the first round, and b1 = b2 = tau = 0 in every round."""
    delta = vector(0.3, -1e-3, 20.0, 0.0)
    first, _ = played(ServerAdam(lr=0.05, tau=0.0, bias_correction=True), [-delta])
    close(first, X + 0.05 * delta.sign())
    signs = ServerAdam(lr=0.05, b1=0.0, b2=0.0, tau=0.0)
    close(played(signs, [-delta, 3 * delta, -delta])[0], X + 0.05 * delta.sign())


@pytest.mark.parametrize("optimizer", ALL, ids=lambda o: o.name)
def test_nothing_happens_without_a_gradient_or_a_rate(optimizer):
    """I-G1: from a fresh state, a zero update moves nothing, bit for bit; nor does a rate of 0."""
    assert torch.equal(played(optimizer, [torch.zeros_like(X)] * 3)[0], X)
    still = type(optimizer)(**{**optimizer.model_dump(), "lr": 0.0})
    assert torch.equal(played(still, [X, -X])[0], X)


@pytest.mark.parametrize("optimizer", ALL, ids=lambda o: o.name)
def test_a_round_that_hears_nobody_leaves_model_and_slots_alone(optimizer):
    run = Federation(FedAvg(server_optimizer=optimizer), X, problem(2)[0], steps=2)
    run.round()
    before = dict(run.state)
    run.round([])
    assert before.keys() == run.state.keys()
    assert all(torch.equal(before[name], run.state[name]) for name in before)


def test_a_step_changes_none_of_its_arguments():
    for optimizer in ALL:
        slots = optimizer.start(X)
        copies = {name: value.clone() for name, value in slots.items()}
        optimizer.step(X, X, slots)
        assert all(torch.equal(slots[name], copies[name]) for name in slots)


def test_slots_travel_under_a_prefix():
    slots = {"m": X, "v": 2 * X}
    state = {"x": X, **joined(slots, "server"), **joined({"m": 3 * X}, "merge")}
    assert split(state, "server").keys() == slots.keys()
    assert torch.equal(split(state, "merge")["m"], 3 * X)


def test_names_and_options_are_read_and_mistakes_are_told():
    read = TypeAdapter(ServerOptimizer).validate_python
    assert read("yogi") == Yogi()
    assert read({"name": "adam", "lr": 0.1}) == ServerAdam(lr=0.1)
    with pytest.raises(ValueError, match="momentum"):
        read("adamw")
    with pytest.raises(ValueError, match="b2"):
        read({"name": "momentum", "b2": 0.5})
    with pytest.raises(ValueError, match=r"server_optimizer\.lr"):
        FedAvg(global_lr=2.0, server_optimizer=ServerAdam())


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [("fedavgm", "momentum"), ("fedadagrad", "adagrad"), ("fedadam", "adam"), ("fedyogi", "yogi")],
)
def test_the_names_of_the_paper_take_their_optimizer_by_its_name_and_no_other(name, optimizer):
    kind = registry.lookup("algorithms", name)
    for said in (optimizer, {"name": optimizer}, {}):
        assert kind.model_validate({"server_optimizer": said}) == kind()
    for other in ("sgd", {"name": "sgd"}, 3):
        with pytest.raises(ValueError, match=rf"found .* \(accepted: {optimizer}, or its options\)"):
            kind.model_validate({"server_optimizer": other})


@pytest.mark.parametrize("name", ["fedavgm", "fedadagrad", "fedadam", "fedyogi"])
def test_the_names_of_the_paper_are_fedavg_with_an_optimizer(name):
    """Bit for bit over three rounds; options of the optimiser are given under its key."""
    kind = registry.lookup("algorithms", name)
    default = kind().server_optimizer
    for named, plain in (
        (kind(), FedAvg(server_optimizer=default)),
        (
            kind.model_validate({"server_optimizer": {"lr": 0.3}}),
            FedAvg(server_optimizer={"name": default.name, "lr": 0.3}),
        ),
    ):
        assert named.name == name
        pair = [Federation(a, X.clone(), problem(3)[0], steps=2) for a in (named, plain)]
        for _ in range(3):
            one, other = (federation.round() for federation in pair)
            assert torch.equal(one, other)
