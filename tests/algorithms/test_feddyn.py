"""FedDyn: worked by hand, and the invariants I-FD of the algorithm contract."""

import pytest
import torch

from fedactors.algorithms.feddyn import FedDyn
from tests.algorithms.harness import Federation, close, linear, local_sgd, minimiser, noisy, problem, quadratic, vector

X = vector(1.0, -2.0, 0.5, 3.0)


def rough(clients=3):
    return [noisy(gradient, k) for k, gradient in enumerate(problem(clients)[0])]


def test_by_hand():
    """2 clients, 2 local steps, f_i(y) = (y - b_i)^2 / 2 with b = (2, 0), eta_l = 0.5, alpha = 1, x = 0.

    Round 1. Client 0 follows (y - 2) + y: 0 -> 1, then (1 - 2) + 1 = 0: theta = 1, r_0 = 1. Client 1 stays: r_1 = 0.
    R = 0.5; x = 0 + 0.5 + 0.5 = 1.
    Round 2. Client 0 follows (y - 2) + r_0 + (y - 1): at 1 it is 0: theta = 1, r_0 = 1. Client 1 follows
    y + 0 + (y - 1): 1 -> 0.5, then 0.5 - 0.5 = 0: theta = 0.5, r_1 = -0.5. R = 0.25; x = 1 - 0.25 + 0.25 = 1.
    Client 0 alone with one step: -1 + 1 + 0 = 0: nothing moves, x = 1 + 0 + 0.25 = 1.25.
    """
    one = torch.eye(1, dtype=torch.float64)
    gradients = [quadratic(one, vector(b)) for b in (2.0, 0.0)]
    federation = Federation(FedDyn(alpha=1.0), vector(0.0), gradients, steps=2, lr=0.5)
    close(federation.round(), vector(1.0))
    close(federation.round(), vector(1.0))
    close(torch.cat([federation.kept[k]["r"] for k in (0, 1)]), vector(1.0, -0.5))
    close(federation.state["r"], vector(0.25))
    close(federation.round([0], steps=[1]), vector(1.25))


def test_the_servers_memory_is_the_mean_of_the_clients():
    """I-FD1: any cohorts, steps and weights; departures and arrivals; x = mean theta_i + (1/m) sum r_i."""
    federation = Federation(FedDyn(alpha=0.1), X.clone(), rough(6), steps=3, members=6)
    rounds = [
        ({"clients": [0, 1]}, 6),
        ({"clients": [1, 3, 4], "steps": [1, 2, 3]}, 6),
        ({"clients": []}, 6),
        ({"clients": [0, 1], "departed": [1, 5]}, 4),
        ({"clients": [3, 4], "arrived": [7]}, 5),
        ({"clients": [0, 2, 3]}, 5),
    ]
    for play, members in rounds:
        sent, chosen = {"x": federation.x}, play["clients"]
        steps = play.get("steps", [3] * len(chosen))
        models = [sent["x"] + federation.trip(k, s, sent).delta for k, s in zip(chosen, steps, strict=True)]
        before = federation.members
        gone = dict(federation.kept)
        federation.round(**play)
        close(federation.state["r"], federation.mean_kept("r", members))
        if chosen:
            kept = {**gone, **federation.kept}
            for client in play.get("departed", ()):
                if client in chosen:
                    kept[client] = {"r": kept.get(client, {"r": 0 * X})["r"] + models[chosen.index(client)] - sent["x"]}
            total = sum((state["r"] for state in kept.values()), 0 * X)
            there = before + len(play.get("arrived", ()))
            close(federation.x, sum(models) / len(models) + total / there)


def test_the_first_round():
    """I-FD2: x + (1 + |P|/m) mean Delta; with everybody twice FedAvg's move."""
    for cohort in ([0, 2], [0, 1, 2]):
        federation = Federation(FedDyn(alpha=0.3), X.clone(), rough(), steps=3)
        deltas = [federation.trip(k, 3, {"x": X}).delta for k in cohort]
        close(federation.round(cohort), X + (1 + len(cohort) / 3) * sum(deltas) / len(cohort))


def test_a_vanishing_regulariser_gives_fedavgs_clients_but_not_its_server():
    """I-FD3: x_t = x_{t-1} + Dbar_t + sum_{s <= t} Dbar_s with everybody taking part."""
    gradients = rough()
    federation = Federation(FedDyn(alpha=1e-9), X.clone(), gradients, steps=3, lr=0.02)
    x, total = X.clone(), 0 * X
    for _ in range(4):
        plain = [local_sgd(x, 0.02, 3, gradient) for gradient in gradients]
        for client, delta in enumerate(plain):
            close(federation.trip(client, 3, {"x": x}).delta, delta, rtol=1e-6)
        mean = sum(plain) / 3
        total = total + mean
        x = x + mean + total
        close(federation.round(), x, rtol=1e-6)
        x = federation.x


def test_linear_losses():
    """I-FD4: first round: Delta_i = -((1 - (1 - eta_l alpha)^K) / alpha) a_i; K are the steps really done."""
    slope, alpha = vector(1.0, 2, 0, -1), 0.4
    federation = Federation(FedDyn(alpha=alpha), X.clone(), [linear(*slope.tolist())], steps=5)
    for steps in (5, 2, 0):
        found = federation.trip(0, steps, {"x": X}).delta
        close(found, -((1 - (1 - 0.1 * alpha) ** steps) / alpha) * slope)


def test_alpha_by_share_by_hand():
    """2 clients of 3 and 1 samples: shares 1.5 and .5 of the mean. alpha = .75: alpha_i = .5 and 1.5; eta = .5, x = 0.

    f_i(y) = (y - b_i)^2 / 2 with b = (2, 0). Round 1. Client 0 follows (y - 2) + .5 y: 0 -> 1, then -1 + .5: -> 1.25.
    Client 1 stays. r = (1.25, 0), R = .625, x = .625 + .625 = 1.25. Round 2. Client 0 follows (y - 2) + .5 * 1.25 +
    .5 (y - 1.25): -.125 at 1.25: -> 1.3125, then -.03125: -> 1.328125. Client 1 follows y + 1.5 (y - 1.25): 1.25 at
    1.25: -> .625, then .625 - .9375: -> .78125.
    """
    one = torch.eye(1, dtype=torch.float64)
    gradients = [quadratic(one, vector(b)) for b in (2.0, 0.0)]
    algorithm = FedDyn(alpha=0.75, alpha_by="share")
    federation = Federation(algorithm, vector(0.0), gradients, steps=2, lr=0.5, shares=(1.5, 0.5))
    close(federation.round(), vector(1.25))
    federation.round()
    kept = torch.cat([federation.kept[k]["r"] for k in (0, 1)])
    close(kept, vector(1.25 + 0.078125, 0.78125 - 1.25))


@pytest.mark.slow
def test_alpha_by_share_reaches_the_optimum_of_the_weighted_mean():
    """Samples 60, 20, 15, 5 of 100: with alpha n / (m n_i) the limit is argmin sum p_i f_i, else of the plain mean."""
    gradients, matrices, targets = problem(4, spread=3.0)
    p = (0.6, 0.2, 0.15, 0.05)
    weighted = minimiser([share * a for share, a in zip(p, matrices, strict=True)], targets)
    for by, best in (("share", weighted), ("client", minimiser(matrices, targets))):
        shares = [4 * share for share in p]
        algorithm = FedDyn(alpha=1.0, alpha_by=by)
        federation = Federation(algorithm, X.clone(), gradients, steps=100, lr=0.1, shares=shares)
        for _ in range(100):
            federation.round()
        assert float((federation.x - best).norm()) < 1e-4
    assert float((weighted - minimiser(matrices, targets)).norm()) > 0.1


@pytest.mark.slow
def test_it_reaches_the_optimum():
    """I-FD5: heterogeneous quadratics with (nearly) exact local minimisation, everybody taking part."""
    gradients, matrices, targets = problem(4, spread=3.0)
    federation = Federation(FedDyn(alpha=1.0), X.clone(), gradients, steps=400, lr=0.1)
    for _ in range(150):
        federation.round()
    assert float((federation.x - minimiser(matrices, targets)).norm()) < 1e-8
