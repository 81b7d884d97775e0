"""Fed-SGD, Fed-AMS and Fed-LAMB: worked by hand, and the invariants I-L of the algorithm contract."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedactors.algorithms.fed_ams import FedAMS
from fedactors.algorithms.fed_lamb import FedLAMB
from fedactors.algorithms.fed_sgd import FedSGD
from fedactors.algorithms.fedavg import FedAvg
from fedactors.learning.algorithm import TaskSetting
from fedactors.models.layers import Layers
from tests.algorithms.harness import Federation, close, linear, local_sgd, noisy, problem, vector

X = vector(1.0, -2.0, 0.5, 3.0)
LAYERS = Layers((2, 2), (4,))
PARTS = (slice(0, 2), slice(2, 4))
BOTH = [FedAMS, FedLAMB]


def rough(clients=3, scale=1.0):
    gradients = [noisy(gradient, k) for k, gradient in enumerate(problem(clients)[0])]
    return [lambda y, step, g=gradient: scale * g(y, step) for gradient in gradients]


def federation(algorithm, gradients=None, **options):
    return Federation(
        algorithm, X.clone(), rough() if gradients is None else gradients, **{"steps": 3, "layers": LAYERS, **options}
    )


def trip(fed, client=0, steps=3):
    return fed.trip(client, steps, {name: fed.state[name] for name in fed.algorithm.sends})


def test_fed_ams_by_hand():
    """2 clients, 2 local steps, linear losses a = (2, 0), b1 = 0.5, b2 = 0.75, eps = 0, v0 = 4, alpha = 0.1, x = 1.

    Client 0: m = 1, 1.5; corrected by 0.5 and 0.75: 2, 2. r = 2 / sqrt 4 = 1 twice: 1 -> 0.9 -> 0.8. v = 3 + 1 = 4,
    again 4. Client 1 stays at 1; v = 3, 2.25. x = 0.9; mean v = 3.125, Vhat = max(4, 3.125) = 4.
    a = 4 instead: r = 2: 0.6; v = 3 + 4 = 7, 5.25 + 4 = 9.25. Mean v = (9.25 + 2.25) / 2 = 5.75 = Vhat; x = 0.8.
    """
    options = {"steps": 2, "lr": 0.1}
    ams = FedAMS(beta1=0.5, beta2=0.75, eps=0.0, v0=4.0)
    one = Federation(ams, vector(1.0), [linear(2.0), linear(0.0)], **options)
    close(one.round(), vector(0.9))
    close(one.state["vhat"], vector(4.0))
    two = Federation(ams, vector(1.0), [linear(4.0), linear(0.0)], **options)
    close(two.round(), vector(0.8))
    close(two.state["vhat"], vector(5.75))


def test_fed_lamb_by_hand():
    """One client, one step, b1 = 0, eps = 0, v0 = 4, lambda = 1, alpha = 0.1, theta = (3, 4), g = (-4, -12).

    r = (-2, -6), u = r + theta = (1, -2), |u| = sqrt 5, |theta| = 5: theta - 0.1 * 5 / sqrt 5 * (1, -2).
    """
    lamb = FedLAMB(beta1=0.0, eps=0.0, v0=4.0, weight_decay=1.0)
    fed = Federation(lamb, vector(3.0, 4.0), [linear(-4.0, -12.0)], layers=Layers((2,), (2,)))
    close(fed.round(), vector(3.0, 4.0) - 0.5 / 5**0.5 * vector(1.0, -2.0))


def test_momentum_is_forgotten_or_kept():
    """reset: a client's trips depend on what it is sent alone; persist: m goes on, uncorrected, at the client only."""
    for kind in BOTH:
        reset, persist = (federation(kind(momentum=mode)) for mode in ("reset", "persist"))
        assert reset.algorithm.keeps == ()
        assert persist.algorithm.keeps == ("m",)
        for fed in (reset, persist):
            fed.round([0, 1])
        assert reset.kept[0] == {}
        before = trip(persist)
        assert not torch.equal(before.delta, trip(persist, steps=1).delta)
        close(trip(persist, client=2, steps=1).state["m"], 0.1 * rough()[2](persist.x, 0))  # first trip: m = 0
        expected = 0.9 * persist.kept[0]["m"] + 0.1 * rough()[0](persist.x, 0)
        close(trip(persist, steps=1).state["m"], expected)
        persist.round([0])
        close(persist.kept[0]["m"], before.state["m"])


@given(st.sampled_from([("identity", None), ("one", None), ("clip", (0.4, 1.5))]), st.integers(1, 6))
def test_each_step_moves_a_layer_by_alpha_phi_of_its_norm(phi, steps):
    """I-L1."""
    name, bounds = phi
    options = {} if bounds is None else {"phi_min": bounds[0], "phi_max": bounds[1]}
    fed = federation(FedLAMB(phi=name, weight_decay=0.1, **options))
    before, after = (X + trip(fed, steps=s).delta for s in (steps - 1, steps))
    for part in PARTS:
        norm = before[part].norm()
        wanted = {"identity": norm, "one": torch.ones_like(norm), "clip": norm.clamp(0.4, 1.5)}[name]
        close((after - before)[part].norm(), fed.lr * wanted)


def test_how_far_a_round_leads():
    """I-L2: identity; I-L3: phi <= phi_M. For clients, and for the average, over several rounds."""
    wild = [linear(1e6, -3, 0, 1e-6), linear(-1, 1, 1, 1), *rough()]
    identity, one = (federation(FedLAMB(phi=phi), wild, steps=5, lr=0.2) for phi in ("identity", "one"))
    for _ in range(4):
        x = identity.x
        moves = [trip(identity, k, 5).delta for k in range(5)]
        moves.append(identity.round() - x)
        bound = (1 + 0.2) ** 5 - 1
        assert all(move[part].norm() <= bound * x[part].norm() * (1 + 1e-9) for move in moves for part in PARTS)
        x = one.x
        deltas = [trip(one, k, 5).delta for k in range(5)]
        new, most = one.round(), 0.2 * 5 * 1.0 * 2**0.5
        assert all(delta.norm() <= most * (1 + 1e-9) for delta in deltas)
        assert all((new - x - delta).norm() <= 2 * most * (1 + 1e-9) for delta in deltas)


@pytest.mark.parametrize("kind", BOTH)
def test_vhat_never_decreases(kind):
    """I-L4, with partial work, empty rounds, and weights that do not sum to one."""
    fed = federation(kind(v0=1e-3, beta2=0.5))
    assert (fed.state["vhat"] == 1e-3).all()
    for play in (
        {},
        {"clients": [1], "steps": [1]},
        {"clients": []},
        {"weights": [0.1, 0.2, 0.3]},
        {"steps": [0, 2, 3]},
    ):
        before = fed.state["vhat"]
        fed.round(**play)
        assert (fed.state["vhat"] >= before).all()
        assert play.get("clients") != [] or torch.equal(fed.state["vhat"], before)
    assert (fed.state["vhat"] > 1e-3).any()


@pytest.mark.parametrize("kind", BOTH)
def test_v_is_the_plain_mean_whatever_the_weights(kind):
    fed = federation(kind(v0=1e-6, beta2=0.5))
    expected = sum(trip(fed, k).state["v"] for k in (0, 2)) / 2
    fed.round([0, 2], weights=[0.9, 0.3])
    close(fed.state["vhat"], torch.maximum(expected, torch.full_like(X, 1e-6)))


def test_the_first_round_of_fed_lamb_depends_neither_on_v0_nor_on_b2():
    """I-L5: lambda = 0: the direction is m / |m| per layer, and the correction of m cancels."""
    runs = [
        federation(FedLAMB(v0=v0, beta2=b2, eps=0.0, momentum=mode), steps=4).round()
        for v0, b2, mode in (
            (1e-6, 0.999, "reset"),
            (1e-2, 0.999, "reset"),
            (1e-6, 0.1, "reset"),
            (1.0, 0.9, "persist"),
        )
    ]
    for other in runs[1:]:
        close(other, runs[0])
    alone = federation(FedLAMB(eps=0.0), rough(1), steps=1)
    m = rough(1)[0](X, 0)
    expected = torch.cat([X[p] - alone.lr * X[p].norm() * m[p] / m[p].norm() for p in PARTS])
    close(alone.round(), expected)
    many = [federation(FedLAMB(momentum=mode, eps=0.0)) for mode in ("reset", "persist")]
    for fed in many:  # later rounds too, as long as nobody comes back with momentum
        for client in range(3):
            fed.round([client])
    close(many[0].x, many[1].x)


@pytest.mark.parametrize("kind", BOTH)
@given(c=st.floats(0.01, 100.0))
def test_scaling_the_loss_changes_nothing(kind, c):
    """I-L6: loss times c, eps = 0, lambda = 0, v0 -> c^2 v0: the same path."""
    plain = federation(kind(v0=1e-4, eps=0.0))
    scaled = federation(kind(v0=1e-4 * c**2, eps=0.0), rough(scale=c))
    for _ in range(3):
        torch.testing.assert_close(scaled.round(), plain.round(), rtol=1e-8, atol=1e-10)


def test_without_memory_fed_ams_is_fed_sgd():
    """I-L7: b1 = 0: the first round has lr alpha / (sqrt(v0) + eps); with b2 = 1 every round has."""
    v0, eps = 1e-2, 1e-3
    rate = 0.1 / (v0**0.5 + eps)
    for b2, rounds in ((0.999, 1), (1.0, 4)):
        ams = federation(FedAMS(beta1=0.0, beta2=b2, v0=v0, eps=eps))
        sgd = federation(FedSGD(), lr=rate)
        for _ in range(rounds):
            close(ams.round(), sgd.round(), rtol=1e-9)
    ams, sgd = federation(FedAMS(beta1=0.0, v0=v0, eps=eps)), federation(FedSGD(), lr=rate)
    for _ in range(2):
        one, other = ams.round(), sgd.round()
    assert (one - other).abs().max() > 1e-6  # b2 < 1 has noticed the gradients


@pytest.mark.parametrize("decay", [0.0, 0.01, 10.0])
def test_zero_gradients(decay):
    """I-L8: no move; with lambda > 0 theta <- (1 - alpha)^T theta, whatever lambda is."""
    fed = federation(FedLAMB(weight_decay=decay), [linear(0, 0, 0, 0)])
    close(fed.round(), X * ((1 - 0.1) ** 3 if decay else 1.0))


def test_the_smallest_fed_lamb_is_normalised_gradient_descent():
    """I-L9: phi = 1, one layer, T = 1, b1 = 0, one client, first round; from zero as well."""
    for start in (X, 0 * X):
        fed = Federation(FedLAMB(phi="one", beta1=0.0), start.clone(), rough(1), layers=Layers((4,), (4,)))
        g = rough(1)[0](start, 0)
        close(fed.round(), start - 0.1 * g / g.norm(), rtol=1e-7)


def test_fed_sgd_is_uniform_fedavg_bitwise():
    """I-L10."""
    one, other = federation(FedSGD()), federation(FedAvg())
    for play in ({}, {"clients": [0, 2], "steps": [1, 3]}, {"clients": []}):
        assert torch.equal(one.round(**play), other.round(**play))
    assert FedSGD.weighting == "uniform"


@pytest.mark.parametrize("kind", BOTH)
def test_a_layer_of_zeros_is_not_frozen(kind):
    fed = Federation(kind(), vector(0, 0, 0.5, 3.0), rough(), layers=LAYERS, steps=2)
    assert fed.round()[:2].abs().min() > 0


def test_tensors_of_a_module_are_scaled_together():
    fed = federation(FedLAMB(layer="module"))
    close((trip(fed, steps=1).delta).norm(), fed.lr * X.norm())


@pytest.mark.parametrize("kind", BOTH)
def test_what_travels_is_charged(kind):
    """(theta, Vhat) down, (theta_i, v_i) up; what is declared is what is sent and summed."""
    for mode in ("reset", "persist"):
        algorithm = kind(momentum=mode)
        payload = algorithm.payload(TaskSetting())
        assert (payload.down, payload.up) == (2.0, 2.0)
        fed = federation(algorithm)
        assert len(algorithm.sends) == payload.down
        assert len(algorithm.upload(trip(fed))) == payload.up
    assert FedSGD().payload(TaskSetting())[:2] == (1.0, 1.0)


def test_local_steps_without_rate_are_sgds():
    """lr = 0 leaves x and the state alone, as everywhere."""
    assert not local_sgd(X, 0.0, 3, rough()[0]).any()
    fed = federation(FedLAMB(), lr=0.0)
    fed.round()
    assert torch.equal(fed.x, X)
    assert (fed.state["vhat"] == 1e-6).all()


CURVATURES = torch.stack([vector(1, 2, 3, 4) / 4, vector(4, 3, 2, 1) / 4, vector(2, 2, 2, 2) / 4])
ALIKE = vector(2, 1, -1, 2).expand(3, 4)
UNLIKE = torch.stack([vector(2, 1, -1, 2), vector(1, 2, 1, 1), vector(2, 2, -1, 3)])


def stationarity(kind, minima, rate):
    """Return |grad f(theta) / Vhat^(1/4)|^2 at the start, and its mean over the last 20 of 60 rounds of three steps.

    f is the mean of (a_i / 2) . (theta - c_i)^2 of three clients, whose minima are c_i.
    """
    clients = [lambda y, step, k=k: CURVATURES[k] * (y - minima[k]) for k in range(3)]
    fed, found = federation(kind(v0=1.0), clients, lr=rate), []
    for _ in range(60):
        gradient = (CURVATURES * (fed.x - minima)).mean(0)
        found.append(float((gradient**2 / fed.state["vhat"].sqrt()).sum()))
        fed.round()
    return found[0], sum(found[-20:]) / 20


def test_fed_lamb_falls_to_a_floor_that_its_rate_sets_where_clients_agree():
    """The left side of the paper's Theorem 1. Steps of a constant relative length end about the minimum, not in it."""
    (start, large), (_, small) = (stationarity(FedLAMB, ALIKE, rate) for rate in (0.04, 0.02))
    assert large < 0.01 * start
    assert small < 0.6 * large


def test_where_clients_disagree_fed_lamb_ends_beside_the_stationary_point_and_fed_ams_does_not():
    """Normalised gradients cancel elsewhere than gradients do: no bound that vanishes with the rate holds."""
    (start, large), (_, small) = (stationarity(FedLAMB, UNLIKE, rate) for rate in (0.04, 0.02))
    assert 0.005 * start < large < 0.05 * start
    assert small == pytest.approx(large, rel=0.2)
    assert stationarity(FedAMS, UNLIKE, 0.04)[1] < 0.1 * large
