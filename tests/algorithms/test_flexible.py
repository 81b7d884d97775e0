"""Participation schemes and shifts of the objective in exact arithmetic: I-R1 to I-R10."""

from itertools import product

import numpy as np
import pytest
import torch

from fedactors.algorithms.fedavg import FedAvg
from fedactors.algorithms.members.objective import FastReboot, Vanilla
from fedactors.algorithms.participation import Members, SchemeA, SchemeB, SchemeC, Update
from tests.algorithms.harness import Federation, close, linear, minimiser, problem, vector

SCHEMES = {"A": SchemeA(), "B": SchemeB(), "C": SchemeC()}
SIZES = [10, 30, 20, 60]
E = 5
X = vector(1.0, -2.0, 0.5, 3.0)


def step(scheme, gradients, steps, sizes=SIZES, lr=0.05, factors=None, members=None, wanted=E):
    """Return how far one round moves x from X; `steps` of 0 are inactive devices, None are not there."""
    heard = [k for k, s in enumerate(steps) if s]
    updates = [Update(sizes[k], sizes[k], steps[k], wanted) for k in heard]
    there = [sizes[k] for k, s in enumerate(steps) if s is not None]
    weights = SCHEMES[scheme].weigh(updates, members or Members(len(there), sum(there)))
    weights = [w * (factors or {}).get(k, 1.0) for k, w in zip(heard, weights, strict=True)]
    counted = [(k, w) for k, w in zip(heard, weights, strict=True) if w]
    federation = Federation(FedAvg(), X, gradients, lr=lr)
    clients, weights = [k for k, _ in counted], [w for _, w in counted]
    return federation.round(clients, [steps[k] for k in clients], weights) - X


def test_all_complete_is_fedavg_with_fixed_weights():
    """I-R1."""
    gradients, *_ = problem(4)
    total = sum(SIZES)
    fedavg = Federation(FedAvg(), X, gradients, steps=E, lr=0.05).round(weights=[n / total for n in SIZES]) - X
    for scheme in SCHEMES:
        assert torch.equal(step(scheme, gradients, [E] * 4), fedavg)


def test_all_equally_incomplete():
    """I-R2: A discards, C is E / s_0 times B; nobody active: no change, bitwise."""
    gradients, *_ = problem(4)
    for done in range(1, E):
        assert torch.equal(step("A", gradients, [done] * 4), torch.zeros(4, dtype=torch.float64))
        close(step("C", gradients, [done] * 4), E / done * step("B", gradients, [done] * 4))
    for scheme in SCHEMES:
        assert torch.equal(step(scheme, gradients, [0] * 4), torch.zeros(4, dtype=torch.float64))


def test_one_step_wanted():
    """I-R3: B = C; A = N / K times B."""
    gradients, *_ = problem(4)
    for steps in product((0, 1), repeat=4):
        b, complete = step("B", gradients, steps, wanted=1), sum(steps)
        assert torch.equal(step("C", gradients, steps, wanted=1), b)
        if complete:
            close(step("A", gradients, steps, wanted=1), 4 / complete * b)


def test_scheme_a_of_equal_sizes_is_the_plain_mean_of_complete_devices():
    """I-R4; with unequal sizes the coefficients may sum to more than 1."""
    updates = [Update(7, 7, s, E) for s in (5, 3, 5, 1)]
    assert SchemeA().weigh(updates, Members(6, 42)) == pytest.approx([0.5, 0, 0.5, 0])
    assert sum(SchemeA().weigh([Update(60, 60, E, E)], Members(4, 120))) == 2.0


def test_linear_losses_and_scheme_c_never_depend_on_steps():
    """I-R5: Delta_C = -eta E grad F; Delta_B = -eta sum p^k s_k a_k."""
    slopes = [torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(k)) for k in range(4)]
    gradients, p = [linear(*a) for a in slopes], [n / sum(SIZES) for n in SIZES]
    gradient = sum(w * a for w, a in zip(p, slopes, strict=True))
    for steps in ((1, 5, 2, 3), (4, 4, 1, 5)):
        close(step("C", gradients, steps), -0.05 * E * gradient)
        close(step("B", gradients, steps), -0.05 * sum(w * s * a for w, s, a in zip(p, steps, slopes, strict=True)))


def expected(scheme, gradients, chances):
    """Return the mean move over independent devices, by enumeration; chances[k][s] = P(s_k = s)."""
    total = torch.zeros(4, dtype=torch.float64)
    for steps in product(range(len(chances[0])), repeat=len(chances)):
        chance = np.prod([law[s] for law, s in zip(chances, steps, strict=True)])
        if chance:
            total += chance * step(scheme, gradients, steps, SIZES[: len(chances)], wanted=2)
    return total


def test_means_over_all_outcomes():
    """I-R6, I-R8 for linear losses: C follows P(s > 0), A is unbiased where devices complete equally often."""
    slopes = [vector(1, 0, 2, 0), vector(0, 1, -1, 0), vector(3, 1, 0, 1)]
    gradients, p = [linear(*a) for a in slopes], [n / 60 for n in SIZES[:3]]
    uneven = [(0.2, 0.5, 0.3), (0.0, 0.1, 0.9), (0.5, 0.5, 0.0)]
    active = [1 - law[0] for law in uneven]
    close(
        expected("C", gradients, uneven),
        -0.05 * 2 * sum(w * q * a for w, q, a in zip(p, active, slopes, strict=True)),
    )
    mean = [law[1] + 2 * law[2] for law in uneven]
    close(expected("B", gradients, uneven), -0.05 * sum(w * m * a for w, m, a in zip(p, mean, slopes, strict=True)))
    gradient = sum(w * a for w, a in zip(p, slopes, strict=True))
    even = [(0.25, 0.35, 0.4)] * 3
    chance = 1 - (1 - 0.4) ** 3  # that anybody is complete
    close(expected("A", gradients, even), -0.05 * 2 * chance * gradient)
    for scheme, factor in (("B", 0.35 + 0.8), ("C", 2 * 0.75)):  # z_tau = 0: the direction is that of grad F
        close(expected(scheme, gradients, even), -0.05 * factor * gradient)


LAWS = [  # P(s = 0 ... 3) of four devices
    (0.05, 0.15, 0.3, 0.5),
    (0.5, 0.3, 0.15, 0.05),
    (0.1, 0.2, 0.3, 0.4),
    (0.3, 0.4, 0.2, 0.1),
]


def complete_shares(laws):
    """Return E[1{k complete} / K | K > 0] of each device."""
    chances, shares = 0.0, np.zeros(len(laws))
    for done in product((0, 1), repeat=len(laws)):
        chance = np.prod([law[3] if d else 1 - law[3] for law, d in zip(laws, done, strict=True)])
        if any(done):
            chances, shares = chances + chance, shares + chance * np.array(done) / sum(done)
    return shares / chances


def limit(scheme, laws, matrices, targets, sizes):
    """Return the predicted limit: argmin of sum_k p^k c_k F_k, c as each scheme has it."""
    table = np.array(laws)
    factors = {"A": complete_shares(laws), "B": table @ np.arange(4), "C": 1 - table[:, 0]}[scheme]
    weighted = [n * f * a for n, f, a in zip(sizes, factors, matrices, strict=True)]
    return minimiser(weighted, targets)


@pytest.mark.parametrize("scheme", "ABC")
def test_limit_points(scheme):
    """I-R7, RR5: with inactivity each scheme ends at its own predicted point, as 1 / tau goes to 0, not at w*.

    Quadratics of one curvature each, so that a round is solved in closed form: s steps of size eta from w move
    device k by (1 - (1 - eta a_k)^s) (t_k - w). The mean over 200 paths and the second half of 2,000 rounds.
    """
    rng, paths, rounds = np.random.default_rng(5), 200, 2_000
    curves, targets, sizes = rng.uniform(0.5, 2, 4), rng.normal(size=(4, 3)) * 2, np.array([10, 30, 20, 40])
    weights = np.zeros((4, 4, 4, 4, 4))  # of each device, for any steps of the four
    for s in product(range(4), repeat=4):
        heard = [k for k in range(4) if s[k]]
        updates = [Update(int(sizes[k]), 1, s[k], 3) for k in heard]
        weights[s][heard] = SCHEMES[scheme].weigh(updates, Members(4, 100))
    w, mean = np.zeros((paths, 3)), np.zeros(3)
    for tau in range(rounds):
        s, eta = np.stack([rng.choice(4, size=paths, p=law) for law in LAWS], 1), 1.0 / (tau + 10)
        pull = weights[tuple(s.T)] * (1 - (1 - eta * curves) ** s)  # (paths, devices)
        w = w + pull @ targets - pull.sum(1, keepdims=True) * w
        mean += w.mean(0) if tau >= rounds // 2 else 0
    found = mean / (rounds // 2)
    matrices = [torch.tensor(c) * torch.eye(3, dtype=torch.float64) for c in curves]
    points = [torch.tensor(t) for t in targets]
    predicted = limit(scheme, LAWS, matrices, points, sizes.tolist()).numpy()
    best = minimiser([n * m for n, m in zip(sizes.tolist(), matrices, strict=True)], points).numpy()
    assert np.linalg.norm(found - predicted) < 0.01
    assert np.linalg.norm(predicted - best) > 0.1


def test_scheme_c_is_consistent_if_nobody_is_inactive():
    """RR5, second half: the predicted limit of C is w* itself, that of B is not."""
    laws = [(0.0, 0.2, 0.3, 0.5), (0.0, 0.6, 0.3, 0.1), (0.0, 0.1, 0.1, 0.8), (0.0, 0.4, 0.4, 0.2)]
    _, matrices, targets = problem(4)
    best = minimiser([n * a for n, a in zip(SIZES, matrices, strict=True)], targets)
    close(limit("C", laws, matrices, targets, SIZES), best)
    assert torch.linalg.norm(limit("B", laws, matrices, targets, SIZES) - best) > 0.05


@pytest.mark.parametrize("scheme", "BC")
def test_excluding_is_including_divided_by_what_is_left(scheme):
    """I-R9: from the same w and rate."""
    gradients, *_ = problem(4)
    include = step(scheme, gradients, [3, 5, 2, 0])
    exclude = step(scheme, gradients, [3, 5, 2, None])
    close(exclude, include / (1 - 60 / 120))


def test_a_boost_is_an_extra_update_of_that_device_alone():
    """I-R10: b = 1 and s_l = 0 give vanilla; otherwise b - 1 times its own weighted update is added."""
    gradients, *_ = problem(4)
    vanilla = step("C", gradients, [3, 5, 2, 4])
    assert torch.equal(step("C", gradients, [3, 5, 2, 4], factors={3: 1.0}), vanilla)
    assert torch.equal(step("C", gradients, [3, 5, 2, 0], factors={3: 3.0}), step("C", gradients, [3, 5, 2, 0]))
    alone = vanilla - step("C", gradients, [3, 5, 2, 0])
    close(step("C", gradients, [3, 5, 2, 4], factors={3: 3.0}), vanilla + 2 * alone)


def test_the_boost_decays_with_the_square_of_the_rounds():
    policy = FastReboot()
    assert [policy.factor(j) for j in range(4)] == [3.0, 1.5, pytest.approx(11 / 9), 1.125]
    assert policy.factor(10**6) == pytest.approx(1.0)
    assert Vanilla().factor(0) == 1.0
