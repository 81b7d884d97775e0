"""FSL, FSL-p, DS and DSL: worked by hand, and the invariants I-F1 to I-F8 of the algorithm contract."""

import pytest
import torch

from fedactors.algorithms.data_sharing import DSL, DataSharing
from fedactors.algorithms.fedavg import FedAvg
from fedactors.algorithms.fsl import FSL
from fedactors.algorithms.fsl_p import FSLp
from fedactors.learning.algorithm import Round, TaskSetting
from tests.algorithms.harness import Federation, close, linear, noisy, problem, quadratic, vector

X = vector(1.0, -2.0, 0.5, 3.0)


def server(gradients, algorithm, **more):
    """A federation whose server learns from the last of `gradients`."""
    return Federation(algorithm, X.clone(), gradients[:-1], central=gradients[-1], **more)


def test_by_hand():
    """FSL, 2 clients, 2 local steps, 2 steps of the server; f_i(y) = (y - b_i)^2 / 2 with b = (2, 0), b_0 = 1; x = 0.

    eta_l = 0.5: client 0 goes 0 -> 1 -> 1.5, client 1 stays at 0. The mean update is 0.75.
    eta_g = 2: xbar = 1.5. gamma = 0.5, eta_0 = 1: the server's rate is 0.5, it goes 1.5 -> 1.25 -> 1.125.
    FSL-p, convex, K_0 = K: Delta_0 = 0 -> 0.5 -> 0.75; x = 2 (0.75 + 0.5 * 0.75) / 1.5 = 1.5.
    FSL-p, additive: x = 2 * 0.75 + (0 -> 0.5 -> 0.75 at rate 0.5) = 2.25.
    """
    one = torch.eye(1, dtype=torch.float64)
    gradients = [quadratic(one, vector(b)) for b in (2.0, 0.0)]
    options = {"global_lr": 2.0, "server_weight": 0.5, "server_steps": 2}

    def after(algorithm):
        return Federation(
            algorithm, vector(0.0), gradients, steps=2, lr=0.5, central=quadratic(one, vector(1.0))
        ).round()

    close(after(FSL(server_lr_base=1.0, **options)), vector(1.125))
    close(after(FSLp(**options)), vector(1.5))
    close(after(FSLp(form="additive", server_lr_base=1.0, **options)), vector(2.25))


def test_data_sharing_by_hand():
    """DS and DSL, 2 clients with one sample each, 2 local steps on both their own and the server's sample; x = 0.

    f(y; b) = (y - b)^2 / 2, b = (4, 0), b_0 = 2, so that client 0 follows y - 3 and client 1 y - 1. eta_l = 0.5:
    client 0 goes 0 -> 1.5 -> 2.25, client 1 goes 0 -> 0.5 -> 0.75. Both hold 2 of the 4 samples: x = 1.5.
    DSL, eta_0 = 0.5, two steps of the server: 1.5 -> 1.75 -> 1.875.
    """
    one = torch.eye(1, dtype=torch.float64)
    gradients = [quadratic(one, vector((b + 2.0) / 2)) for b in (4.0, 0.0)]

    def after(algorithm):
        return Federation(
            algorithm, vector(0.0), gradients, steps=2, lr=0.5, central=quadratic(one, vector(2.0))
        ).round(weights=[2 / 4, 2 / 4])

    close(after(DataSharing()), vector(1.5))
    close(after(DSL(server_lr=0.5, server_steps=2)), vector(1.875))


@pytest.mark.parametrize("nothing", [{"server_weight": 0.0}, {"server_steps": 0}, {"server_lr_base": 0.0}, {"own": 0}])
@pytest.mark.parametrize("make", [FSL, FSLp])
def test_without_a_server_step_it_is_fedavg_bitwise(make, nothing):
    """I-F1 and the first half of I-F6, over rounds with any cohort."""
    nothing = dict(nothing)
    own = nothing.pop("own", 1)
    gradients = [noisy(g, k) for k, g in enumerate(problem(4)[0])]
    one = server(gradients, make(global_lr=1.5, **nothing), steps=3, own=own)
    other = server(gradients, FedAvg(global_lr=1.5), steps=3)
    for cohort in ([0, 1], [2], [0, 1, 2], []):
        assert torch.equal(one.round(cohort), other.round(cohort))


def test_the_conference_version_is_the_journals_with_plain_averaging():
    """I-F2, bitwise."""
    gradients = [noisy(g, k) for k, g in enumerate(problem(4)[0])]
    one = server(gradients, FSL(version="conference", server_lr=0.06, server_steps=3), steps=2)
    other = server(gradients, FSL(global_lr=1.0, server_weight=2.0, server_lr_base=0.03, server_steps=3), steps=2)
    for cohort in ([0, 1, 2], [1], []):
        assert torch.equal(one.round(cohort), other.round(cohort))


def test_one_client_with_the_servers_data_takes_all_steps_in_a_row():
    """I-F3: K + K_0 gradient steps; without the server K stochastic steps."""
    gradient = problem(1)[0][0]
    found = server([gradient] * 2, FSL(global_lr=1.0, server_lr_base=0.1, server_steps=2), steps=3, lr=0.1).round()
    y = X.clone()
    for _ in range(5):
        y = y - 0.1 * gradient(y, 0)
    close(found, y)
    rough, y = noisy(gradient, 1), X.clone()
    for step in range(3):
        y = y - 0.1 * rough(y, step)
    close(server([rough] * 2, FSL(global_lr=1.0, server_weight=0.0), steps=3, lr=0.1).round(), y)


def test_single_steps_are_an_incremental_gradient_method():
    """I-F4."""
    gradients, *_ = problem(4)
    found = server(gradients, FSL(global_lr=1.3, server_weight=0.7, server_lr_base=0.2, server_steps=1)).round()
    y = X - 1.3 * 0.1 * sum(g(X, 0) for g in gradients[:3]) / 3
    close(found, y - 0.7 * 0.2 * gradients[3](y, 0))


def test_linear_losses():
    """I-F5: both formulas, and FSL = FSL-p (additive)."""
    slopes = [vector(1.0, 2, 0, -1), vector(0.0, 1, 1, 3), vector(2.0, 0, 0, 1), vector(1.0, 1, -1, 0)]
    gradients = [linear(*a.tolist()) for a in slopes]
    options = {"global_lr": 1.5, "server_weight": 0.7, "server_steps": 4}
    found = server(gradients, FSL(server_lr_base=0.03, **options), steps=3).round()
    mean = sum(slopes[:3]) / 3
    close(found, X - 1.5 * 0.1 * 3 * mean - 0.7 * 0.03 * 4 * slopes[3])
    close(server(gradients, FSLp(form="additive", server_lr_base=0.03, **options), steps=3).round(), found)
    coupled = server(gradients, FSL(**options), steps=3).round()  # K_0 eta_0 = K eta_l eta_g
    tilde = (mean + 0.7 * slopes[3]) / 1.7
    close(coupled, X - 3 * 0.1 * 1.5 * 1.7 * tilde)


@pytest.mark.parametrize("form", ["convex", "additive"])
def test_single_steps_of_fsl_p_descend_the_combined_loss(form):
    """I-F6: x - eta_g eta_l grad Ftilde, and x - eta_0 (1 + gamma) grad Ftilde with eta_0 = eta_g eta_l."""
    gradients, *_ = problem(4)
    found = server(gradients, FSLp(form=form, global_lr=1.3, server_weight=0.7, server_steps=1)).round()
    tilde = (sum(g(X, 0) for g in gradients[:3]) / 3 + 0.7 * gradients[3](X, 0)) / 1.7
    close(found, X - 1.3 * 0.1 * (1.0 if form == "convex" else 1.7) * tilde)


def test_incremental_and_additive_differ_by_the_curvature():
    """I-F7: quad, K_0 = 1: FSL - FSL-p (additive) = -gamma eta_0 A_0 (xbar - x)."""
    gradients, matrices, _ = problem(4)
    options = {"global_lr": 1.3, "server_weight": 0.7, "server_lr_base": 0.2, "server_steps": 1}
    one = server(gradients, FSL(**options), steps=3).round()
    other = server(gradients, FSLp(form="additive", **options), steps=3).round()
    xbar = server(gradients, FedAvg(global_lr=1.3), steps=3).round()
    close(one - other, -0.7 * 0.2 * matrices[3] @ (xbar - X))


def test_data_sharing_without_shared_data_is_fedavg_and_dsl_without_a_rate_is_ds():
    """I-F8, bitwise; client gradients are those of the data they hold."""
    gradients = [noisy(g, k) for k, g in enumerate(problem(4)[0])]
    runs = [
        server(gradients, algorithm, steps=3, own=own)
        for algorithm, own in (
            (FedAvg(), 0),
            (DataSharing(), 0),
            (DataSharing(), 5),
            (DSL(server_lr=0.0), 5),
            (DSL(server_lr=0.1, server_steps=0), 5),
        )
    ]
    for cohort in ([0, 1], [2], [0, 1, 2]):
        models = [run.round(cohort) for run in runs]
        assert all(torch.equal(models[0], model) for model in models[1:])


def test_data_sharing_shrinks_the_dissimilarity():
    """I-F8: equal n_i: G_DS^2 = (n_i / (n_i + n_0))^2 G^2, grad F' = (n grad F + N n_0 grad f_0) / (n + N n_0)."""
    gradients, *_ = problem(5)
    own, each, clients = 7.0, 20.0, 4
    at = torch.stack([g(X, 0) for g in gradients])
    joined = (each * at[:clients] + own * at[clients]) / (each + own)

    def spread(rows):
        return ((rows - rows.mean(0)) ** 2).sum(1).mean()

    close(spread(joined), (each / (each + own)) ** 2 * spread(at[:clients]))
    total = clients * each
    expected = (total * at[:clients].mean(0) + clients * own * at[clients]) / (total + clients * own)
    close(joined.mean(0), expected)


def test_the_server_learns_though_nobody_was_heard():
    gradients, *_ = problem(2)
    found = server(gradients, FSL(server_lr_base=0.1, server_steps=2)).round([])
    y = X.clone()
    for _ in range(2):
        y = y - 0.1 * gradients[1](y, 0)
    close(found, y)


def test_partial_work_shortens_a_clients_update_and_leaves_the_servers_steps():
    """lin: s_i of K = 4 steps give s_i eta_l a_i; the coupling stays that of K."""
    gradients = [linear(1.0, 0, 0, 0), linear(0.0, 1, 0, 0), linear(0.0, 0, 1, 0)]
    federation = server(gradients, FSL(global_lr=1.0, server_steps=2), steps=4, lr=0.1)
    found = federation.round([0, 1], steps=[4, 1])
    close(found, X - vector(0.2, 0.05, 0.4, 0.0))  # K_0 eta_0 = K eta_l = 0.4
    scaled = server(gradients, FSL(global_lr=1.0, server_steps=2), steps=4, lr=0.1)
    close(scaled.round([0, 1], steps=[4, 1], weights=[0.5, 4 * 0.5]), X - vector(0.2, 0.2, 0.4, 0.0))  # Scheme C


@pytest.mark.parametrize(
    ("setting", "work", "ratio"),
    [
        (TaskSetting(10, 4, 50_000, 500, 100, 1, 50), (10, 50), 2.000),
        (TaskSetting(45, 5, 45 * 2400, 225, 100, 1, 24), (11, 33), 1.626),
        (TaskSetting(1000, 10, 50_000, 500, 10, 1, 5), (1, 50), 0.316),
        (TaskSetting(450, 5, 450 * 240, 450, 50, 1, 5), (1, 9), 1.242),
    ],
    ids=["cifar-1", "emnist-1", "cifar-2", "emnist-2"],
)
def test_the_journals_settings(setting, work, ratio):
    """E_s, K_0 and eta_0 / eta_l of both scenarios."""
    found = FSL().central_work(setting)
    assert (found.wanted // found.pass_steps, found.wanted) == work
    rate = FSL().server_rate(Round(0, 1, 1.0, 0.01, setting))
    assert rate / 0.01 == pytest.approx(ratio, abs=5e-4)


def test_payloads():
    setting = TaskSetting(
        clients=10, cohort=4, samples=1000, central=60, batch=10, epochs=1, steps=10, sample_size=0.01
    )
    assert FSL(server_epochs=2).payload(setting)[:5] == (1, 1, 0, 0, 120)
    assert FSLp(server_epochs=2).payload(setting)[:5] == (1, 1, 0, 120, 0)
    assert DataSharing().payload(setting).once == pytest.approx(0.6)
    assert DataSharing(share="upfront").payload(setting).ahead == pytest.approx(0.6)
    dsl = DSL(server_lr=0.1, server_epochs=1).payload(setting)
    assert (dsl.after, dsl.once) == (60, pytest.approx(0.6))


@pytest.mark.parametrize(
    "options",
    [
        {"server_lr": 0.1},
        {"version": "conference"},
        {"version": "conference", "server_lr": 0.1, "global_lr": 2.0},
        {"version": "conference", "server_lr": 0.1, "server_weight": 2.0},
        {"server_epochs": 1, "server_steps": 1},
    ],
)
def test_contradictory_options_are_refused(options):
    with pytest.raises(ValueError, match="server_"):
        FSL(**options)
