"""SCAFFOLD: worked by hand, and the invariants I-SC of the algorithm contract."""

import pytest
import torch

from fedactors.algorithms.fedavg import FedAvg
from fedactors.algorithms.scaffold import Scaffold
from fedactors.learning.algorithm import TaskSetting
from tests.algorithms.harness import Federation, close, linear, minimiser, noisy, problem, quadratic, vector

X = vector(1.0, -2.0, 0.5, 3.0)
PLAIN = {"global_lr": 1.0}


def rough(clients=3, seed=0):
    return [noisy(gradient, k) for k, gradient in enumerate(problem(clients, seed=seed)[0])]


def test_by_hand():
    """2 clients, 2 local steps, f_i(y) = (y - b_i)^2 / 2 with b = (2, 0), eta_l = 0.5, eta_g = 1, x = 1.

    Round 1, c = c_i = 0. Client 0: 1 -> 1.5 -> 1.75, c_0 = (1 - 1.75) / (2 * 0.5) = -0.75. Client 1: 1 -> 0.5 -> 0.25,
    c_1 = 0.75. x = 1 + (0.75 - 0.75) / 2 = 1, c = (-0.75 + 0.75) / 2 = 0.
    Round 2. Client 0 follows (y - 2) + 0.75: at 1 it is -0.25: 1 -> 1.125, then -0.125: -> 1.1875. Its control variate:
    -0.75 - 0 + (1 - 1.1875) / 1 = -0.9375, the mean of the raw gradients -1 and -0.875. Client 1 mirrors it: 0.8125,
    0.9375. Client 0 alone in round 3 with one step: -1 + 0.9375 = -0.0625: 1 -> 1.03125, c_0 = -0.9375 + 0.0625 * -1
    = -1, divided by the one step done; c = 0 + (-1 + 0.9375) / 2 = -0.03125.
    """
    one = torch.eye(1, dtype=torch.float64)
    gradients = [quadratic(one, vector(b)) for b in (2.0, 0.0)]
    federation = Federation(Scaffold(**PLAIN), vector(1.0), gradients, steps=2, lr=0.5)
    close(federation.round(), vector(1.0))
    close(torch.cat([federation.kept[k]["c"] for k in (0, 1)]), vector(-0.75, 0.75))
    close(federation.round(), vector(1.0))
    close(torch.cat([federation.kept[k]["c"] for k in (0, 1)]), vector(-0.9375, 0.9375))
    close(federation.round([0], steps=[1]), vector(1.03125))
    close(federation.kept[0]["c"], vector(-1.0))
    close(federation.state["c"], vector(-0.03125))


def test_the_first_round_is_fedavgs():
    """I-SC1."""
    one, other = (Federation(a, X.clone(), rough(), steps=4) for a in (Scaffold(global_lr=1.4), FedAvg(global_lr=1.4)))
    close(one.round([0, 2]), other.round([0, 2]))


@pytest.mark.parametrize("option", ["I", "II"])
def test_the_servers_variate_is_the_mean_of_the_clients(option):
    """I-SC2: any cohorts, steps and weights; departures and arrivals, also of clients never heard."""
    federation = Federation(Scaffold(option=option), X.clone(), rough(6), steps=3, members=6)
    rounds = [
        ({"clients": [0, 1]}, 6),
        ({"clients": [1, 3, 4], "steps": [1, 0, 3], "weights": [0.2, 0.9, 0.5]}, 6),
        ({"clients": []}, 6),
        ({"clients": [0, 1], "departed": [1]}, 5),
        ({"clients": [0], "departed": [5]}, 4),
        ({"clients": [3, 4], "arrived": [7, 8]}, 6),
        ({"clients": [0, 3], "arrived": [9], "departed": [4]}, 6),
        ({"clients": [0, 2, 3]}, 6),
    ]
    for play, members in rounds:
        federation.round(**play)
        assert federation.members == members
        close(federation.state["c"], federation.mean_kept("c", members))


def test_option_ii_keeps_the_mean_gradient_of_the_path():
    """I-SC3, with s_i < K steps too, and for a client without steps c_i stays."""
    federation = Federation(Scaffold(), X.clone(), rough(), steps=4)
    federation.round()
    seen = {0: [], 1: []}
    gradients = federation.gradients
    federation.gradients = [
        lambda y, step, k=k: seen.setdefault(k, []).append(gradients[k](y, step)) or seen[k][-1] for k in range(3)
    ]
    before = federation.kept[2]["c"]
    federation.round([0, 1, 2], steps=[4, 2, 0])
    for client, count in ((0, 4), (1, 2)):
        assert len(seen[client]) == count
        close(federation.kept[client]["c"], sum(seen[client]) / count)
    assert torch.equal(federation.kept[2]["c"], before)


def test_options_coincide_for_a_single_step():
    """I-SC3, second half."""
    one, other = (Federation(Scaffold(option=option), X.clone(), rough(), steps=1) for option in ("I", "II"))
    for cohort in ([0, 1], [1, 2], [0, 1, 2]):
        close(one.round(cohort), other.round(cohort))
        close(one.state["c"], other.state["c"])


@pytest.mark.parametrize(
    ("gradients", "steps"),
    [(rough(1), 4), (rough(5), 1), ([problem(1)[0][0]] * 3, 4)],
    ids=["one client", "single steps", "identical clients"],
)
def test_cases_in_which_it_is_fedavg_for_ever(gradients, steps):
    """I-SC4."""
    one, other = (Federation(a, X.clone(), gradients, steps=steps) for a in (Scaffold(**PLAIN), FedAvg()))
    for _ in range(5):
        close(one.round(), other.round())


def test_linear_losses():
    """I-SC5: the server's path is FedAvg's; from the second round all clients move alike."""
    slopes = [vector(1.0, 2, 0, -1), vector(0.0, 1, 1, 3), vector(2.0, 0, 0, 1)]
    gradients = [linear(*a.tolist()) for a in slopes]
    one, other = (Federation(a, X.clone(), gradients, steps=4) for a in (Scaffold(**PLAIN), FedAvg()))
    for _ in range(4):
        close(one.round(), other.round())
        sent = {name: one.state[name] for name in ("x", "c")}
        for client in range(3):
            close(one.trip(client, 4, sent).delta, -0.1 * 4 * sum(slopes) / 3)


@pytest.mark.slow
def test_it_reaches_the_optimum_and_fedavg_does_not():
    """I-SC6: heterogeneous quadratics, K = 5, constant rate."""
    gradients, matrices, targets = problem(4, spread=3.0)
    best = minimiser(matrices, targets)
    one, other = (Federation(a, X.clone(), gradients, steps=5, lr=0.02) for a in (Scaffold(**PLAIN), FedAvg()))
    for _ in range(1500):
        one.round()
        other.round()
    assert float((one.x - best).norm()) < 1e-8
    assert float((other.x - best).norm()) > 1e-3


def test_weights_change_the_way_and_not_where_it_leads():
    """c = mean(c_i) rests at 0 alone: the minimiser of the plain mean, whatever the weights; FedAvg follows these."""
    gradients, matrices, targets = problem(4, spread=3.0)
    weights = [0.1, 0.2, 0.3, 0.4]
    weighted = [weight * matrix for weight, matrix in zip(weights, matrices, strict=True)]
    one, other = (Federation(a, X.clone(), gradients, steps=1, lr=0.1) for a in (Scaffold(**PLAIN), FedAvg()))
    for _ in range(500):
        one.round(weights=weights)
        other.round(weights=weights)
    assert float((one.x - minimiser(matrices, targets)).norm()) < 1e-8
    assert float((other.x - minimiser(weighted, targets)).norm()) < 1e-8
    assert float((one.x - other.x).norm()) > 0.1


def test_payload_is_twice_fedavgs():
    assert Scaffold().payload(TaskSetting())[:5] == (2, 2, 0, 0, 0)
