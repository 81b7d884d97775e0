"""Epsilon by hand, by the library's own published examples, and by brute force over the nodes of a tree."""

from math import sqrt

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp

from fedactors.privacy.spending import GaussianSpending, LaplaceSpending, TreeSpending, gaussian_epsilon, spending_on
from fedactors.transforms.adaptive_clip import AdaptiveClip
from fedactors.transforms.gaussian import GaussianNoise
from fedactors.transforms.laplace import LaplaceNoise
from fedactors.transforms.tree_noise import TreeNoise, nodes
from fedactors.transforms.update_clipping import ClipUpdates
from tests.transforms.vectors import draws

DELTA = 1e-5


def spent_by(spending, rounds):
    """Return a spending after rounds of (client, weight) pairs."""
    for heard in rounds:
        clients, weights = zip(*heard, strict=True) if heard else ((), ())
        spending.add(np.array(clients, np.int64), np.array(weights, np.float64))
    return spending


@pytest.mark.parametrize(("sigma", "delta"), [(0.5, 1e-3), (1, 1e-1), (3, 1e-2)])
def test_one_round_is_the_example_of_the_library(sigma, delta):
    """test_get_epsilon_gaussian_pld of dp_accounting/gaussian_mechanism_test.py, sigma and delta as there."""
    found = spent_by(GaussianSpending(GaussianNoise(multiplier=sigma), delta, (False,)), [[(0, 0.25), (1, 0.25)]])
    event = dp_accounting.GaussianDpEvent(sigma)
    expected = pld.PLDAccountant().compose(event).get_epsilon(delta)
    np.testing.assert_allclose(found.epsilon, expected, rtol=1e-7)


def test_rounds_compose_as_the_library_composes_them():
    """Device 0 is heard in 9 of 20 rounds at the largest weight: nine Gaussian mechanisms, one after the other."""
    rounds = [[(0, 0.5), (1, 0.25)] if number % 2 else [(2, 0.1)] for number in range(18)] + [[], []]
    found = spent_by(GaussianSpending(GaussianNoise(multiplier=1.1), DELTA, (False,)), rounds)
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(1.1), 9)
    np.testing.assert_allclose(found.epsilon, pld.PLDAccountant().compose(event).get_epsilon(DELTA), rtol=1e-6)
    np.testing.assert_allclose(found.spent[:3], [9 / 1.21, 9 / 4 / 1.21, 9 / 1.21])  # half the weight, a quarter


def test_a_mixture_of_multipliers_composes_as_the_library_does():
    """Noise that clients share: z = 2 over 4, heard by 4, 2 and 1 of equal weight: multipliers 2, 2 / sqrt 2, 1."""
    noise = GaussianNoise(multiplier=2.0, added="clients", over=4)
    rounds = [[(client, 1 / heard) for client in range(heard)] for heard in (4, 2, 1)]
    found = spent_by(GaussianSpending(noise, DELTA, (False,)), rounds)
    events = [dp_accounting.GaussianDpEvent(one) for one in (2.0, 2 / sqrt(2), 1.0)]
    expected = pld.PLDAccountant().compose(dp_accounting.ComposedDpEvent(events)).get_epsilon(DELTA)
    np.testing.assert_allclose(found.epsilon, expected, rtol=1e-6)


def test_local_noise_counts_each_message_alone():
    """Two vectors a trip, one of them without weights: 2 / z^2 whatever others do."""
    noise = GaussianNoise(multiplier=4.0, added="clients")
    found = spent_by(GaussianSpending(noise, DELTA, (False, True)), [[(0, 0.9), (1, 0.1)]])
    np.testing.assert_allclose(found.spent[:2], [2 / 16, 2 / 16])


def test_laplace_adds_up():
    """The library's example runs Laplace noise of parameter 3 40 times: by simple composition epsilon is 40 / 3."""
    noise = LaplaceNoise(multiplier=3.0)
    found = spent_by(LaplaceSpending(noise, DELTA, (False,)), [[(0, 0.5), (1, 0.25)]] * 40)
    assert found.epsilon == pytest.approx(40 / 3)
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(3.0), 40)
    assert pld.PLDAccountant().compose(event).get_epsilon(DELTA) <= found.epsilon  # it knows better, for a delta
    np.testing.assert_allclose(found.spent[1], 20 / 3)


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.25, 0.25, 0.25, 0.25), (0.2, 0.3, 0.5)])
def test_shared_laplace_noise_costs_what_its_density_says(weights):
    """Of a sum of Laplace noises the densities at a distance D differ most in the tails: integrated on a grid.

    Sensitivity of client i: w_i (S = 1); scale of client j's part: w_j s, s = b / sqrt(over).
    """
    b, over, step = 2.0, 4, 0.005
    grid = np.arange(-20, 20, step)
    scales = [one * b / sqrt(over) for one in weights]
    density = np.exp(-np.abs(grid) / scales[0]) / (2 * scales[0])
    for scale in scales[1:]:
        density = np.convolve(density, np.exp(-np.abs(grid) / scale) / (2 * scale), mode="same") * step
    found = spent_by(
        LaplaceSpending(LaplaceNoise(multiplier=b, added="clients", over=over), DELTA, (False,)),
        [list(enumerate(weights))],
    )
    logs = np.log(density[np.abs(grid) < 8])  # beyond that the grid's ends can be seen
    for client, weight in enumerate(weights):
        away = round(weight / step)
        loss = float(np.abs(logs[away:] - logs[:-away]).max())
        assert loss <= found.spent[client] * 1.01
        assert loss > 0.75 * found.spent[client]  # the tails come near it slowly


@pytest.mark.parametrize(("multiplier", "published"), [(1.13, 19.74), (8.83, 2.04)])
def test_a_tree_over_1600_rounds_is_the_example_of_the_library(multiplier, published):
    """StackOverflow in Kairouz et al., as in test_compute_eps_tree of dp_accounting: each device is heard once."""
    noise = TreeNoise(multiplier=multiplier, weight=0.01)
    spending = spent_by(TreeSpending(noise, 1e-6, (False,)), [[(version, 0.01)] for version in range(1600)])
    accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(dp_accounting.SingleEpochTreeAggregationDpEvent(multiplier, 1600))
    equal = rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(1 / sqrt(spending.spent.max())))
    np.testing.assert_allclose(equal.get_epsilon(1e-6), accountant.get_epsilon(1e-6), rtol=1e-9)
    assert spending.epsilon < accountant.get_epsilon(1e-6) < published  # exact is less than by Renyi divergences


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_counts_every_node_that_is_used(seed):
    """Brute force: nodes of all prefixes, each with the sum of what a device did in its rounds, squared."""
    draws = np.random.default_rng(seed)
    count = int(draws.integers(1, 40))
    rounds = [[(c, float(draws.uniform(0.1, 2))) for c in range(4) if draws.random() < 0.4] for _ in range(count)]
    noise = TreeNoise(multiplier=1.7, weight=0.5)
    found = spent_by(TreeSpending(noise, DELTA, (False,)), rounds)
    rounds = [heard for heard in rounds if heard]  # those in which nobody is heard are no rounds of the tree
    used = {node for prefix in range(1, len(rounds) + 1) for node in nodes(prefix)}
    for client in range(4):
        total = 0.0
        for level, place in used:
            inside = rounds[place << level : (place + 1) << level]
            total += sum(weight for heard in inside for one, weight in heard if one == client) ** 2
        spent = found.spent[client] if client < len(found.spent) else 0.0
        assert spent == pytest.approx(total / (1.7 * 0.5) ** 2)


def test_nothing_spent_is_epsilon_zero_and_more_is_more():
    spending = GaussianSpending(GaussianNoise(multiplier=1.0), DELTA, (False,))
    assert spent_by(spending, [[]]).epsilon == 0.0
    seen = [spent_by(spending, [[(3, 0.2)]]).epsilon for _ in range(5)]
    assert seen == sorted(set(seen))
    assert gaussian_epsilon(1.0, DELTA) == pytest.approx(seen[0])


@pytest.mark.parametrize("bits", [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], ids=str)
def test_a_bit_costs_what_it_moves_beside_one_that_adds_nothing(bits):
    """The server sums b_i - 1/2: a device that sends nothing of it counts as 1/2, any bit is 1/2 away from that.

    The logarithm of C moves by -rate times the mean of the bits, so the movement of their sum can be read off it.
    """
    clip = AdaptiveClip(rate=0.3, count_deviation=3.0)
    silent = AdaptiveClip(rate=0.3)
    heard = len(bits)
    moved = []
    for device in range(heard):
        others = sum(bits) - bits[device]
        one, none = (silent.next_broadcast_value(1.0, others + bit, heard, draws(1)) for bit in (bits[device], 0.5))
        moved.append(abs(np.log(one) - np.log(none)) * heard / silent.rate)
    np.testing.assert_allclose(moved, 0.5)
    found = spent_by(
        GaussianSpending(GaussianNoise(multiplier=1.5), DELTA, (False,), clip), [[(k, 0.2) for k in range(heard)]]
    )
    np.testing.assert_allclose(found.spent[:heard], 1 / 1.5**2 + np.square(np.array(moved) / clip.count_deviation))


def test_updates_and_bits_compose_as_the_library_composes_them():
    """Andrew et al. 2021, Theorem 1: noise of z_u and bits of sigma_b are one mechanism of (z_u^-2 + (2 s_b)^-2)^-1/2.

    The library's event for it is two Gaussian mechanisms, with the multipliers z_u and 2 sigma_b.
    """
    raised, deviation, rounds = 1.2, 0.8, 7
    clip = AdaptiveClip(count_deviation=deviation)
    found = spent_by(
        GaussianSpending(GaussianNoise(multiplier=raised), DELTA, (False,), clip), [[(0, 0.5), (1, 0.5)]] * rounds
    )
    both = dp_accounting.ComposedDpEvent(
        [dp_accounting.GaussianDpEvent(raised), dp_accounting.GaussianDpEvent(2 * deviation)]
    )
    expected = pld.PLDAccountant().compose(both, rounds).get_epsilon(DELTA)
    np.testing.assert_allclose(found.epsilon, expected, rtol=1e-6)
    together = (raised**-2 + (2 * deviation) ** -2) ** -0.5
    np.testing.assert_allclose(found.spent[0], rounds / together**2)


@pytest.mark.parametrize("built_in", [GaussianNoise(multiplier=1.0), TreeNoise(multiplier=1.0, weight=0.1)], ids=str)
def test_noise_derived_from_what_is_built_in_is_not_accounted_for(built_in):
    """It may add less."""
    kind = type(built_in)
    less = type("Less", (kind,), {"apply": lambda self, rows, kept, given: (rows, {})})(**built_in.model_dump())
    clip = ClipUpdates(norm=1.0)
    assert spending_on(built_in, clip, DELTA, (False,)) is not None
    assert spending_on(less, clip, DELTA, (False,)) is None
    counting = type("Counting", (AdaptiveClip,), {})(count_deviation=1.0)
    assert spending_on(GaussianNoise(multiplier=1.0), counting, DELTA, (False,)) is None
