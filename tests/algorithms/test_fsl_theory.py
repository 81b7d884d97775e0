"""What the FSL journal paper proves: invariants I-F9 to I-F11 of the algorithm contract."""

from itertools import combinations
from math import sqrt

import pytest
import torch

from fedactors.algorithms.fsl import FSL
from tests.algorithms.harness import close, problem
from tests.algorithms.test_fsl import X, server


def test_the_combined_gradient_splits():
    """I-F9."""
    gradients, *_ = problem(4)
    f, f0, gamma = sum(g(X, 0) for g in gradients[:3]) / 3, gradients[3](X, 0), 0.6
    tilde = (f + gamma * f0) / (1 + gamma)
    square = lambda v: (v**2).sum()  # noqa: E731
    close(
        square(f) + gamma * square(f0),
        (1 + gamma) * square(tilde) + gamma / (1 + gamma) * square(f - f0),
    )


def test_an_iid_sample_of_the_server_is_as_far_as_theory_says():
    """I-F10: E over all n_0-subsets |grad f_0 - grad F|^2 = (n/n_0 - 1) sigma0t^2 / (n - 1); D_0 = D gives 0."""
    gradients, *_ = problem(6)
    rows = torch.stack([g(X, 0) for g in gradients])
    mean, n = rows.mean(0), len(rows)
    sigma = ((rows - mean) ** 2).sum(1).mean()
    for n0 in (1, 2, 4, 6):
        apart = [((rows[list(chosen)].mean(0) - mean) ** 2).sum() for chosen in combinations(range(n), n0)]
        close(sum(apart) / len(apart), (n / n0 - 1) * sigma / (n - 1))


def theory(gamma, eta_g, a, lipschitz, cohort, clients, g2, xi2):
    """Return (h, right-hand side without Ftilde and gradient) of the journal's (12) with sigma = sigma_0 = 0."""
    rho = (clients - cohort) / (clients - 1)
    kappa = max(4 * gamma**3, 2 / eta_g**2 + 3 * gamma**2)
    psi = rho * g2 / cohort
    phi = gamma**2 * psi + 2 * gamma**2 / cohort * rho * g2 + 2 * g2 / eta_g**2
    h = gamma + 0.5 - a * lipschitz * (1 + gamma) / 2 * (3 * gamma + 3 + 16 * kappa * a * lipschitz)
    rest = 5 * a**2 * lipschitz * psi + 8 * a**3 * lipschitz**2 * (gamma * kappa * xi2 / (1 + gamma) + phi)
    return h, rest, kappa


@pytest.mark.parametrize("seed", range(12))
def test_one_round_descends_as_the_theorem_says(seed):
    """I-F11: (13) implies h >= (3 gamma + 1)/4, and (12) holds in expectation over all cohorts; one shared Hessian."""
    gradients, matrices, targets = problem(5, seed=seed, shared=True)
    gamma, cohort, clients, steps = 0.25 * (seed % 4 + 1), 2 + seed % 2, 4, 3
    eta_g, lipschitz = sqrt(cohort), float(torch.linalg.eigvalsh(matrices[0])[-1])
    kappa = max(4 * gamma**3, 2 / eta_g**2 + 3 * gamma**2)
    a = min(
        1 / (8 * lipschitz * (gamma + 1)) * min(1, (gamma + 1) ** 2 / (2 * kappa)),
        1 / (4 * lipschitz) * min(eta_g, 1 / gamma, 8 / 9),
    )
    at = torch.stack([g(X, 0) for g in gradients])
    grad_f, g2 = at[:clients].mean(0), 0.0
    g2 = float(((at[:clients] - grad_f) ** 2).sum(1).mean())
    h, rest, _ = theory(gamma, eta_g, a, lipschitz, cohort, clients, g2, float(((at[clients] - grad_f) ** 2).sum()))
    assert h >= (3 * gamma + 1) / 4 - 1e-12

    def tilde(x):
        losses = [0.5 * (x - b) @ m @ (x - b) for m, b in zip(matrices, targets, strict=True)]
        return float((sum(losses[:clients]) / clients + gamma * losses[clients]) / (1 + gamma))

    options = FSL(server_weight=gamma, server_steps=steps)
    after = []
    for chosen in combinations(range(clients), cohort):
        setting = {"cohort": cohort}
        federation = server(gradients, options, steps=steps, lr=a / (steps * eta_g), setting=setting)
        after.append(tilde(federation.round(chosen)))
    slope = float((((grad_f + gamma * at[clients]) / (1 + gamma)) ** 2).sum())
    assert sum(after) / len(after) <= tilde(X) - a * h * slope + rest + 1e-12
