"""I-G: what holds for every algorithm in the registry, in double precision."""

from itertools import combinations

import pytest
import torch

from fedactors import registry
from fedactors.algorithms.fedavg import FedAvg
from tests.algorithms.harness import Federation, close, noisy, problem, quadratic, vector

OPTIONS = {"dsl": {"server_lr": 0.05}}
ALGORITHMS = {name: OPTIONS.get(name, {}) for name in registry.names("algorithms")}
X = vector(1.0, -2.0, 0.5, 3.0)


def made(name, **options):
    return registry.lookup("algorithms", name)(**{**OPTIONS.get(name, {}), **options})


def test_fedavg_by_hand():
    """2 clients, 2 local steps, f_i(y) = (y - b_i)^2 / 2 with b = (2, 0), eta_l = 0.5, x = 1, n = (3, 1).

    Client 0 goes 1 -> 1.5 -> 1.75, client 1 goes 1 -> 0.5 -> 0.25: x = 0.75 * 1.75 + 0.25 * 0.25 = 1.375. With
    eta_g = 2 it moves twice as far, and with one step of client 0 only (s = 1 < K) its model is 1.5.
    """
    one = torch.eye(1, dtype=torch.float64)
    gradients = [quadratic(one, vector(b)) for b in (2.0, 0.0)]

    def after(global_lr, **play):
        return Federation(FedAvg(global_lr=global_lr), vector(1.0), gradients, steps=2, lr=0.5).round(**play)

    close(after(1.0, weights=[0.75, 0.25]), vector(1.375))
    close(after(2.0, weights=[0.75, 0.25]), vector(1.75))
    close(after(1.0, weights=[0.75, 0.25], steps=[1, 2]), vector(0.75 * 1.5 + 0.25 * 0.25))


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("nothing", [{"lr": 0.0}, {"steps": 0}])
def test_no_rate_or_no_step_leaves_everything_bitwise_unchanged(name, nothing):
    """I-G1, from a fresh state; the server's own rate and steps are 0 as well.

    Where a server's optimiser has a running mean of squares, that one forgets: only x and m stay.
    """
    gradients, *_ = problem(3)
    algorithm = made(name)
    if "server_lr" in type(algorithm).model_fields and algorithm.version == "conference":
        algorithm = algorithm.model_copy(update={"server_lr": 0.0})
    federation = Federation(algorithm, X.clone(), gradients, central=gradients[0], **{"lr": 0.1, "steps": 2, **nothing})
    before = {key: value.clone() for key, value in federation.state.items()}
    for _ in range(2):
        federation.round()
    assert federation.state.keys() == before.keys()
    assert all(torch.equal(federation.state[key], before[key]) for key in before if key != "server.v")
    for kept in federation.kept.values():
        assert not any(value.any() for name, value in kept.items() if name != "own")
        assert torch.equal(kept.get("own", federation.x), federation.x), "an own model starts from what was sent"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_order_in_which_updates_arrive_does_not_matter(name):
    """I-G2, bitwise: sums run over ascending client ids."""
    gradients, *_ = problem(4)
    states = []
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        federation = Federation(made(name), X.clone(), gradients, central=gradients[1], steps=3, lr=0.05)
        for _ in range(3):
            federation.round(order)
        states.append(federation.state)
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


@pytest.mark.parametrize("weights", [(0.2, 0.3, 0.5), (0.2, 0.3, 0.1)])
def test_averaging_deltas_is_averaging_models_iff_weights_sum_to_one(weights):
    """I-G3."""
    gradients, *_ = problem(3)
    federation = Federation(FedAvg(), X.clone(), gradients, steps=2)
    models = [X + federation.trip(client, 2, {"x": X}).delta for client in range(3)]
    averaged = sum(w * y for w, y in zip(weights, models, strict=True))
    gap = (federation.round(weights=weights) - averaged).abs().max()
    assert (gap < 1e-12) == (sum(weights) == 1.0)


def test_one_step_of_everybody_is_a_gradient_step():
    """I-G4: K = 1, weights p_i: x - eta_g eta_l grad F."""
    gradients, *_ = problem(3)
    p = (0.5, 0.2, 0.3)
    federation = Federation(FedAvg(global_lr=1.7), X.clone(), gradients, lr=0.1)
    close(federation.round(weights=p), X - 1.7 * 0.1 * sum(w * g(X, 0) for w, g in zip(p, gradients, strict=True)))


@pytest.mark.parametrize("cohort", [[0], [1, 2], [0, 1, 2]])
def test_identical_clients_are_gradient_descent_for_every_cohort(cohort):
    """I-G5."""
    gradient = problem(1)[0][0]
    y = X.clone()
    for _ in range(4):
        y = y - 0.1 * gradient(y, 0)
    close(Federation(FedAvg(), X.clone(), [gradient] * 3, steps=4).round(cohort), y)


def test_one_client_in_the_cohort_gives_its_model():
    """I-G5, second half, with stochastic gradients."""
    gradients = [noisy(g, k) for k, g in enumerate(problem(3)[0])]
    federation = Federation(FedAvg(), X.clone(), gradients, steps=3)
    delta = federation.trip(1, 3, {"x": X}).delta
    close(federation.round([1]), X + delta)


@pytest.mark.parametrize(("clients", "cohort"), [(5, 2), (5, 4), (6, 3), (4, 4), (1, 1)])
def test_variance_of_the_cohorts_mean(clients, cohort):
    """I-G6: E|mean_S v_i - mean v|^2 = rho_s Gv^2 / S over all cohorts, by enumeration."""
    draws = torch.Generator().manual_seed(3)
    v = torch.randn(clients, 4, dtype=torch.float64, generator=draws)
    mean = v.mean(0)
    cohorts = list(combinations(range(clients), cohort))
    found = []
    for members in cohorts:
        federation = Federation(FedAvg(), torch.zeros_like(mean), [(lambda y, step, a=row: -a) for row in v], lr=1.0)
        found.append(float(((federation.round(members) - mean) ** 2).sum()))
    rho = (clients - cohort) / (clients - 1) if clients > 1 else 0.0
    spread = float(((v - mean) ** 2).sum(1).mean())
    assert sum(found) / len(cohorts) == pytest.approx(rho * spread / cohort, rel=1e-10, abs=1e-14)


def test_mean_squares_split_into_the_mean_and_the_spread():
    """I-G7: (1/N) sum |grad f_i|^2 = |grad F|^2 + G^2, as hosts and server compute it in two sums."""
    from fedactors.learning.dissimilarity import dissimilarity, gradient_sum

    draws = torch.Generator().manual_seed(2)
    rows = torch.randn(6, 9, generator=draws).numpy()
    parts = [gradient_sum(rows[:2]), gradient_sum(rows[2:5]), gradient_sum(rows[5:])]
    found = dissimilarity(parts, rows[0])
    exact = rows.astype(float)
    mean = exact.mean(0)
    assert found["g2"] == pytest.approx(((exact - mean) ** 2).sum(1).mean(), rel=1e-12)
    assert found["g2"] + mean @ mean == pytest.approx((exact**2).sum(1).mean(), rel=1e-12)
    assert found["xi2"] == pytest.approx(((exact[0] - mean) ** 2).sum(), rel=1e-12)
