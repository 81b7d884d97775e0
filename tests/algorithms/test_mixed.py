"""Mixed federated learning: worked by hand, and the invariants I-M and I-X of the algorithm contract."""

import pytest
import torch

from fedactors.algorithms.example_transfer import ExampleTransfer
from fedactors.algorithms.fedavg import FedAvg
from fedactors.algorithms.fsl import FSL
from fedactors.algorithms.fsl_p import FSLp
from fedactors.algorithms.one_way import OneWay
from fedactors.algorithms.parallel_training import ParallelTraining
from fedactors.algorithms.two_way import TwoWay
from fedactors.optim.server_optimizers import ServerAdam, ServerMomentum
from tests.algorithms.harness import Federation, close, linear, noisy, problem, quadratic, vector

X = vector(1.0, -2.0, 0.5, 3.0)
ONE = torch.eye(1, dtype=torch.float64)
EVERY = (ParallelTraining, OneWay, TwoWay, ExampleTransfer)


def mixed(gradients, algorithm, x=X, **more):
    """A federation with a central learner whose unweighted gradient is the last of `gradients`."""
    return Federation(algorithm, x.clone(), gradients[:-1], central=gradients[-1], **more)


def rough(clients=4, **more):
    return [noisy(gradient, seed) for seed, gradient in enumerate(problem(clients, **more)[0])]


def times(factor, gradient):
    return lambda y, step: factor * gradient(y, step)


def test_by_hand():
    """2 clients, 2 steps each: f_i(y) = (y - b_i)^2 / 2, b = (2, 0), b_c = 1, w_f = w_c = 1/2, eta = 1/2, x = 0.

    A weighted gradient is (y - b) / 2, so a step covers a quarter of the way.
    PT: client 0 goes 0, .5, .875, client 1 stays, mean .4375; central 0, .25, .4375; x = .875.
    1-W: gc = -.5; client 0 goes 0, .75, 1.3125, client 1 goes 0, .25, .4375; x = .875.
    2-W, first round: PT's; gc = -.4375 / (eta_c K_c = 1), gf = -.875 / (eta sum K_i = 2).
    2-W, second round from .875: central .875, 1.125, 1.3125; client 0 .875, 1.375, 1.75; client 1 stays.
    ET: client 0 follows y - 1.5: 0, .75, 1.125; client 1 y - .5: 0, .25, .375; x = .75.
    """
    gradients = [quadratic(ONE, vector(b)) for b in (2.0, 0.0, 1.0)]
    options = {"x": vector(0.0), "steps": 2, "lr": 0.5}
    close(mixed(gradients, ParallelTraining(), **options).round(), vector(0.875))
    close(mixed(gradients, OneWay(), **options).round(), vector(0.875))
    close(mixed(gradients, ExampleTransfer(), **options).round(), vector(0.75))
    both = mixed(gradients, TwoWay(), **options)
    close(both.round(), vector(0.875))
    close(both.state["gc"], vector(-0.4375))
    close(both.state["gf"], vector(-0.4375))
    close(both.round(), vector(1.75))


def test_with_single_steps_pt_one_way_and_example_transfer_are_one():
    """I-M1, with unequal weights of the losses, eta_s, partial cohorts and stochastic gradients."""
    runs = [mixed(rough(), a(central_weight=0.3, global_lr=1.4)) for a in (ParallelTraining, OneWay, ExampleTransfer)]
    for cohort in ([0, 1, 2], [1], [0, 2]):
        first, *others = [run.round(cohort) for run in runs]
        for other in others:
            close(other, first)


def test_with_single_steps_two_way_adds_the_gradient_of_the_round_before():
    """I-M2: PT in round 0; then x+ = x - eta eta_s (ghat_t(x_t) + ghat_{t-1}(x_{t-1}))."""
    gradients = rough()
    both, parallel = (mixed(gradients, algorithm(global_lr=1.5)) for algorithm in (TwoWay, ParallelTraining))

    def total(x):
        return 0.5 * sum(g(x, 0) for g in gradients[:-1]) / 3 + 0.5 * gradients[-1](x, 0)

    models = [X, both.round()]
    close(models[1], parallel.round())
    for _ in range(3):
        models.append(both.round())
        close(models[-1], models[-2] - 0.1 * 1.5 * (total(models[-2]) + total(models[-3])))
    assert not torch.allclose(models[2], parallel.round())


def test_linear_losses_make_all_methods_one():
    """I-M3: PT = 1-W = ET for any K; 2-W with eta_m = 1/2 from round 1 on, or from round 0 if told the gradients."""
    slopes = [vector(1.0, 2, 0, -1), vector(0.0, 1, 1, 3), vector(2.0, 0, 0, 1)]
    gradients = [linear(*a.tolist()) for a in slopes]
    runs = [mixed(gradients, a(), steps=4) for a in (ParallelTraining, OneWay, ExampleTransfer)]
    half = mixed(gradients, TwoWay(merge_lr=0.5), steps=4)
    told = mixed(gradients, TwoWay(merge_lr=0.5), steps=4)
    told.state |= {"gc": 0.5 * slopes[2], "gf": 0.5 * (slopes[0] + slopes[1]) / 2}
    for t in range(3):
        before = half.x
        first, *others = [run.round() for run in (*runs, told)]
        for other in others:
            close(other, first)
        step = half.round() - before
        close(
            step,
            -0.1 * 4 * 0.5 * ((slopes[0] + slopes[1]) / 2 + slopes[2]) * (0.5 if t == 0 else 1.0),
        )


class Recorder:
    """A gradient that notes what it answered."""

    def __init__(self, gradient):
        self.gradient, self.answers = gradient, []

    def __call__(self, y, step):
        self.answers.append(self.gradient(y, step))
        return self.answers[-1]

    def forget(self):
        self.answers = []


def test_two_way_recovers_the_mean_raw_gradients_along_both_paths():
    """I-M4, first half: unequal K_i and weights, eta_s, eta_m and eta_c of their own."""
    recorders = [Recorder(g) for g in rough()]
    options = {"central_weight": 0.3, "merge_lr": 0.7, "global_lr": 1.2, "central_steps": 5, "central_lr": 0.03}
    both = mixed(recorders, TwoWay(**options), steps=4)
    for steps in ([4, 1, 2], [3, 3, 0], [1, 4, 4]):
        for recorder in recorders:
            recorder.forget()
        both.round(steps=steps, weights=[0.5, 0.3, 0.2])
        met = [answer for recorder in recorders[:-1] for answer in recorder.answers]
        assert len(met) == sum(steps)
        close(both.state["gf"], 0.7 * sum(met) / len(met))
        close(both.state["gc"], 0.3 * sum(recorders[-1].answers) / 5)


def test_two_way_takes_the_sum_of_the_old_and_the_new_total_gradient():
    """I-M4, second half: x+ - x = -eta_m eta K ((gc+ + gf+) + (gc + gf)): twice the step of the other methods."""
    both = mixed(rough(), TwoWay(merge_lr=0.8), steps=3)
    for _ in range(4):
        before = dict(both.state)
        after = both.round()
        total = both.state["gc"] + both.state["gf"] + before["gc"] + before["gf"]
        close(after - before["x"], -0.8 * 0.1 * 3 * total)


@pytest.mark.parametrize("nothing", [{"central_weight": 0.0}, {"zero": True}])
def test_without_a_central_loss_it_is_fedavg(nothing):
    """I-M5: PT and 1-W always; 2-W in round 0, and with an extra -eta_m eta_c K_c gf later."""
    nothing = dict(nothing)
    zero = nothing.pop("zero", False)
    gradients = rough()
    central = linear(0.0, 0, 0, 0) if zero else gradients[-1]
    weight = 1 - nothing.get("central_weight", 0.5)
    plain = Federation(FedAvg(), X, [times(weight, g) for g in gradients[:-1]], steps=3)
    parallel, before, both = (
        mixed([*gradients[:-1], central], algorithm(**nothing), steps=3)
        for algorithm in (ParallelTraining, OneWay, TwoWay)
    )
    first = plain.round()
    for run in (parallel, before, both):
        close(run.round(), first)
    second, gf = plain.round(), both.state["gf"]
    close(parallel.round(), second)
    close(before.round(), second)
    close(both.round(), second - 0.1 * 3 * gf)


def test_without_central_data_the_central_learner_rests():
    gradients = rough()
    for algorithm in (ParallelTraining, OneWay, TwoWay):
        run = mixed(gradients, algorithm(), steps=3, own=0)
        plain = Federation(FedAvg(), X, [times(0.5, g) for g in gradients[:-1]], steps=3)
        for _ in range(3):
            close(run.round(), plain.round())


@pytest.mark.slow
def test_gradient_transfer_finds_the_minimiser_and_parallel_training_does_not():
    """I-M6: identical clients, quadratics, full gradients, K = 5."""
    _, matrices, targets = problem(2)
    gradients = [quadratic(matrices[0], targets[0])] * 3 + [quadratic(matrices[1], targets[1])]
    best = torch.linalg.solve(matrices[0] + matrices[1], matrices[0] @ targets[0] + matrices[1] @ targets[1])
    apart = {}
    for algorithm in (ParallelTraining(), OneWay(), TwoWay(), TwoWay(merge_lr=0.5)):
        run = mixed(gradients, algorithm, steps=5)
        for _ in range(600):
            run.round()
        apart[str(algorithm)] = float((run.x - best).norm())
    parallel, *others = apart.values()
    assert max(others) < 1e-8
    assert parallel > 1e-2


@pytest.mark.slow
def test_a_fixed_point_of_one_way_is_one_of_two_way():
    """I-M6, second half, for clients unlike each other: gc = grad f_c(x), gf = -gc."""
    gradients, *_ = problem(4)
    one = mixed(gradients, OneWay(), steps=5)
    for _ in range(3000):
        one.round()
    close(one.round(), one.x)
    both = mixed(gradients, TwoWay(), steps=5, x=one.x)
    gc = 0.5 * gradients[-1](one.x, 0)
    both.state |= {"gc": gc, "gf": -gc}
    torch.testing.assert_close(both.round(), one.x, rtol=0, atol=1e-8)
    torch.testing.assert_close(both.state["gc"], gc, rtol=0, atol=1e-8)
    torch.testing.assert_close(both.state["gf"], -gc, rtol=0, atol=1e-8)


def test_fsl_p_additive_is_parallel_training():
    """I-X1: K_0, gamma eta_0 = K_c, eta_c; eta_s = eta_g, eta_m = 1, f_c = f_0."""
    gradients = rough()
    beside = FSLp(form="additive", global_lr=1.3, server_weight=2.0, server_lr_base=0.02, server_steps=4)
    parallel = ParallelTraining(global_lr=1.3, central_lr=0.04, central_steps=4)
    one = mixed(gradients, beside, steps=3)
    other = mixed([times(2, g) for g in gradients], parallel, steps=3)  # w_f = w_c = 1/2 take it back
    for cohort in ([0, 1, 2], [1], [], [0, 2]):
        close(one.round(cohort), other.round(cohort))


def test_server_learning_and_mixed_learning_meet():
    """I-X2: linear losses: FSL = PT. 1-W with K = 1 is FedAvg on f_i + f_c, for any losses."""
    slopes = [linear(1.0, 2, 0, -1), linear(0.0, 1, 1, 3), linear(2.0, 0, 0, 1)]
    doubled = [times(2, g) for g in slopes]
    fsl = mixed(slopes, FSL(global_lr=1.3, server_lr_base=0.02, server_steps=4), steps=3)
    parallel = mixed(doubled, ParallelTraining(global_lr=1.3, central_lr=0.02, central_steps=4), steps=3)
    close(fsl.round(), parallel.round())
    gradients = rough()
    one = mixed(gradients, OneWay())
    sums = [lambda y, step, g=g: 0.5 * (g(y, step) + gradients[-1](y, step)) for g in gradients[:-1]]
    plain = Federation(FedAvg(), X, sums)
    for cohort in ([0, 1, 2], [2], [0, 1]):
        close(one.round(cohort), plain.round(cohort))


def test_a_round_that_hears_nobody():
    """PT and 2-W keep the central part, 2-W its gf; 1-W and ET change nothing, bit for bit; SERVEROPT rests."""
    gradients = rough()
    for algorithm in (OneWay, ExampleTransfer):
        run = mixed(gradients, algorithm(server_optimizer=ServerAdam()), steps=2)
        run.round()
        before = dict(run.state)
        run.round([])
        assert all(torch.equal(before[name], run.state[name]) for name in before)
    for algorithm in (ParallelTraining, TwoWay):
        run = mixed(gradients, algorithm(server_optimizer=ServerMomentum(lr=0.5)), steps=2)
        run.round()
        before = dict(run.state)
        moved = run.round([]) - before["x"]
        correction = before.get("gf", torch.zeros_like(X))
        y = before["x"]
        for step in range(2):
            y = y - 0.1 * 0.5 * (0.5 * gradients[-1](y, step) + correction)  # eta_c = eta eta_s
        close(moved, y - before["x"])
        assert torch.equal(before["server.m"], run.state["server.m"])
        assert before.keys() == run.state.keys()
        if algorithm is TwoWay:
            assert torch.equal(before["gf"], run.state["gf"])


def test_rates_and_steps_of_zero_keep_the_transferred_gradients():
    """I-G1: nothing divides by a rate or by steps that are zero."""
    for more in ({"lr": 0.0}, {"steps": 0}):
        run = mixed(rough(), TwoWay(), **more)
        run.state |= {"gc": X, "gf": 2 * X}
        run.round()
        assert torch.equal(run.state["gc"], X)
        assert torch.equal(run.state["gf"], 2 * X)
