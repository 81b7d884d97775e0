"""FedProx and FedNova: worked by hand, and what they promise."""

import pytest
import torch
from pydantic import ValidationError

from fedactors.algorithms.fedavg import FedAvg
from fedactors.algorithms.fednova import FedNova
from fedactors.algorithms.fedprox import FedProx
from tests.algorithms.harness import Federation, close, linear, minimiser, noisy, problem, quadratic, vector

X = vector(1.0, -2.0, 0.5, 3.0)


def rough(clients=3):
    return [noisy(gradient, k) for k, gradient in enumerate(problem(clients)[0])]


def test_fedprox_by_hand():
    """One client, 2 steps, f = (y - 2)^2 / 2, eta = 0.5, mu = 1, x = 0: 0 -> 1, then g = -1, pull 1: stays at 1."""
    one = quadratic(torch.eye(1, dtype=torch.float64), vector(2.0))
    close(Federation(FedProx(mu=1.0), vector(0.0), [one], steps=2, lr=0.5).round(), vector(1.0))
    close(Federation(FedProx(mu=0.0), vector(0.0), [one], steps=2, lr=0.5).round(), vector(1.5))


def test_fedprox_without_its_term_is_fedavg_bitwise():
    one, other = (Federation(a, X.clone(), rough(), steps=3) for a in (FedProx(mu=0.0), FedAvg()))
    for _ in range(2):
        assert torch.equal(one.round(), other.round())


def test_a_strong_pull_keeps_clients_near_the_model():
    far, near = (Federation(FedProx(mu=mu), X.clone(), rough(), steps=50, lr=0.02).round() - X for mu in (0.0, 20.0))
    assert near.norm() < 0.3 * far.norm()


def test_fednova_by_hand():
    """Linear losses a = 1 and 3, steps 1 and 3, equal weights, eta = 0.1.

    Delta = -0.1 and -0.9; per step -0.1 and -0.3: mean -0.2; tau_eff = 2: -0.4, where FedAvg would move by -0.5.
    """
    for algorithm, moved in ((FedNova(), -0.4), (FedAvg(), -0.5)):
        fed = Federation(algorithm, vector(0.0), [linear(1.0), linear(3.0)])
        close(fed.round(steps=[1, 3]), vector(moved))


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"mu": 0.7}, {"momentum": 0.3, "global_lr": 2.0}])
def test_equal_work_is_fedavg_with_the_same_local_steps(options):
    """tau_eff |a|^-1 = 1, except that a proximal tau_eff counts steps: tau / |a|_1 larger."""
    fed = Federation(FedNova(**options), X.clone(), rough(), steps=4, lr=0.05)
    sent = {"x": X}
    mean = sum(fed.trip(k, 4, sent).delta for k in range(3)) / 3
    shrink = 0.05 * options.get("mu", 0.0)
    scale = 4 * shrink / (1 - (1 - shrink) ** 4) if shrink else 1.0
    close(fed.round(), X + scale * options.get("global_lr", 1.0) * mean)


def test_a_proximal_tau_eff_by_hand():
    """Linear losses a = 1 and 3, steps 1 and 2, equal weights, eta = 0.1, mu = 5: each step keeps half of what was.

    Delta = -0.1 and -(0.15 + 0.3) = -0.45, |a|_1 = 1 and 1.5: d = -0.1 and -0.3, mean -0.2. tau_eff is (1 + 1.5) / 2 =
    1.25 by |a|_1: -0.25; by steps 1.5: -0.3.
    """
    for tau_eff, moved in (("norm", -0.25), ("steps", -0.3)):
        fed = Federation(FedNova(mu=5.0, tau_eff=tau_eff), vector(0.0), [linear(1.0), linear(3.0)])
        close(fed.round(steps=[1, 2]), vector(moved))


@pytest.mark.parametrize(
    ("eta", "norms"),
    [(1.0, [0, 1, 1, 1]), (1.5, [0, 1, 1.5, 1.75]), (2.0, [0, 1, 2, 3]), (3.0, [0, 1, 3, 7])],
)
def test_the_norm_adds_up_sizes_where_a_pull_overshoots(eta, norms):
    """mu = 1: a = (1, -1/2, 1/4) at eta = 3/2, (1, -1, 1) at 2, (1, -2, 4) at 3; the latest gradient comes first."""
    found = FedNova(mu=1.0).norm(torch.arange(4, dtype=torch.float64), eta)
    assert found.tolist() == norms


def test_equal_proximal_work_is_fedprox_where_tau_eff_is_the_mean_of_norms():
    nova = Federation(FedNova(mu=0.7, tau_eff="norm"), X.clone(), rough(), steps=4, lr=0.05)
    prox = Federation(FedProx(mu=0.7), X.clone(), rough(), steps=4, lr=0.05)
    for _ in range(3):
        close(nova.round(), prox.round())


@pytest.mark.parametrize("options", [{}, {"momentum": 0.6}, {"mu": 0.5}, {"mu": 1e-6}])
@pytest.mark.parametrize("tau", [1, 2, 7])
def test_the_norm_of_a_is_the_weight_of_all_gradients(options, tau):
    """With linear losses Delta = -eta |a|_1 slope: the formula against the steps themselves."""
    fed = Federation(FedNova(**options), X.clone(), [linear(1.0, -2, 0, 4)], steps=tau)
    trip = fed.trip(0, tau, {"x": X})
    norm = fed.algorithm.norm(torch.tensor([float(tau)], dtype=torch.float64), fed.lr)
    close(trip.delta, -fed.lr * norm * vector(1.0, -2, 0, 4), rtol=1e-9)
    close(fed.algorithm.upload(trip)["direction"], -fed.lr * vector(1.0, -2, 0, 4), rtol=1e-9)


@pytest.mark.slow
def test_unequal_work_does_not_move_the_optimum():
    """Quadratics; client 0 takes 20 steps, the others 1: FedNova's limit is far nearer to the minimiser."""
    gradients, matrices, targets = problem(3, shared=True, spread=2.0)
    optimum, away = minimiser(matrices, targets), {}
    for algorithm in (FedAvg(), FedNova()):
        fed = Federation(algorithm, X.clone(), gradients, lr=0.005)
        for _ in range(1500):
            fed.round(steps=[20, 1, 1])
        away[algorithm.name] = float((fed.x - optimum).norm())
    assert away["fednova"] < 0.2 * away["fedavg"]


def test_weights_scale_the_step_once_and_idle_clients_count_for_nothing():
    halves = Federation(FedNova(), vector(0.0), [linear(1.0), linear(3.0)])
    close(halves.round(weights=[0.25, 0.25], steps=[1, 3]), vector(-0.2))
    idle = Federation(FedNova(), vector(0.0), [linear(1.0), linear(3.0)])
    close(idle.round(steps=[0, 2]), vector(-0.15))  # d = (0, -0.3), tau_eff = (0 + 2) / 2
    assert not torch.cat([trip.isnan() for trip in idle.algorithm.upload(idle.trip(0, 0, {"x": X[:1]})).values()]).any()


def test_momentum_and_prox_together_are_refused():
    with pytest.raises(ValidationError, match="not both"):
        FedNova(momentum=0.9, mu=0.1)
