"""What each device has spent of its privacy, from the rounds in which it was heard and the weights that it had.

The guarantee is for users, one at each device: two runs are neighbours if in one of them what a device sends adds
nothing to any sum before the noise, that is, its update is 0 and its bit of a clip that adapts, b_i - 1/2, is 0 as well
("zero-out": Kairouz et al. 2021; the relation REPLACE_SPECIAL of dp-accounting). Who takes part when, and with what
weight, is the same in both and known to everybody. So a device changes the sum of updates of a round by at most w_i S,
and that of bits by 1/2, whatever its data are (Andrew et al. 2021, Theorem 1, has the same two). Two runs with other
data of one device are neighbours of a third, and twice as far from each other: as with half the multiplier.

    gaussian   server:    round costs (w_i / (z max w))^2     clients, divided by `over`:  w_i^2 over / (z^2 sum w^2)
               clients by themselves (`over: 1`): 1 / z^2, for a server that is not trusted
    laplace    server:    w_i / (b max w)                      clients, divided by `over`:  w_i sqrt(over) / (b max w)
               clients by themselves:  1 / b
    tree       sum over the nodes that were used of (sum over its rounds of w_i / (z W))^2

Where a clip adapts, the count of short updates costs (1/2 / sigma_b)^2 more. Gaussian costs add up: all rounds are
together one Gaussian mechanism whose multiplier is one over the root of the sum, also where rounds depend on earlier
ones (Dong et al. 2022). Costs of Laplace noise are epsilons; a sum of such noise has the tails of the longest
alone, so what clients share protects no better than one share. In a tree a device's updates can all point in one
direction, so they add up before they are squared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from fedactors.extras import needed
from fedactors.transforms.adaptive_clip import AdaptiveClip
from fedactors.transforms.base import UpdateTransform
from fedactors.transforms.gaussian import GaussianNoise
from fedactors.transforms.laplace import LaplaceNoise
from fedactors.transforms.noise import Noise
from fedactors.transforms.tree_noise import TreeNoise

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
_DIGITS = 9  # of epsilon: more would depend on the processor


class Spending(ABC):
    """What the devices have spent; `spent` is `(devices,)`, and grows with the largest number of a device heard.

    `unweighted` says for each vector that a device uploads whether it is summed without weights.
    """

    def __init__(self, delta: float, unweighted: tuple[bool, ...]) -> None:
        self.delta = delta
        self._unweighted = unweighted
        self.spent: Float64 = np.zeros(0)

    def add(self, clients: Int64, weights: Float64) -> None:
        """Take in the updates that counted in a round; one in which none did costs nothing."""
        if not len(clients):
            return
        self._grow(int(clients.max()) + 1)
        for unweighted in self._unweighted:
            self._spend(clients, np.ones(len(weights)) if unweighted else weights)
        self._close()

    @property
    def epsilon(self) -> float:
        """Epsilon of the device that has spent most."""
        most = float(self.spent.max(initial=0.0))
        return float(f"{self._epsilon(most):.{_DIGITS}g}") if most else 0.0

    def _grow(self, devices: int) -> None:
        if devices > len(self.spent):
            self.spent = np.pad(self.spent, (0, 2 * devices - len(self.spent)))

    def _close(self) -> None:  # noqa: B027 - most noise knows no rounds
        """Take in that a round is over."""

    @abstractmethod
    def _spend(self, clients: Int64, weights: Float64) -> None:
        """Add what a vector costs the clients of a round."""

    @abstractmethod
    def _epsilon(self, spent: float) -> float:
        """Return the epsilon of a device that has spent so much."""


class GaussianSpending(Spending):
    """Of Gaussian noise; `spent` is one over the square of the multiplier of all rounds together."""

    def __init__(
        self, noise: Noise, delta: float, unweighted: tuple[bool, ...], counted: AdaptiveClip | None = None
    ) -> None:
        super().__init__(delta, unweighted)
        self._noise = noise
        self._bit = 0.0 if counted is None else 1 / (2 * counted.count_deviation) ** 2

    def _spend(self, clients: Int64, weights: Float64) -> None:
        np.add.at(self.spent, clients, np.square(relative(self._noise, weights)) + self._bit)

    def _epsilon(self, spent: float) -> float:
        return gaussian_epsilon(spent, self.delta)


class LaplaceSpending(Spending):
    """Of Laplace noise; `spent` is epsilon itself, for any delta."""

    def __init__(self, noise: Noise, delta: float, unweighted: tuple[bool, ...]) -> None:
        super().__init__(delta, unweighted)
        self._noise = noise

    def _spend(self, clients: Int64, weights: Float64) -> None:
        np.add.at(self.spent, clients, pure(self._noise, weights))

    def _epsilon(self, spent: float) -> float:
        return spent


class TreeSpending(Spending):
    """Of the noise of a tree; `spent` counts the nodes whose noise has been used."""

    def __init__(self, noise: TreeNoise, delta: float, unweighted: tuple[bool, ...]) -> None:
        super().__init__(delta, unweighted)
        self._noise = noise
        self._rounds = 0  # in which somebody was heard
        self._open: list[Float64] = []  # by level: what each device has in the node that is not complete

    def _grow(self, devices: int) -> None:
        super()._grow(devices)
        self._open = [np.pad(one, (0, len(self.spent) - len(one))) for one in self._open]

    def _spend(self, clients: Int64, weights: Float64) -> None:
        costs = weights / (self._noise.multiplier * self._noise.weight)
        for one in self._levels():
            np.add.at(one, clients, costs)

    def _levels(self) -> list[Float64]:
        """Return the open nodes of all levels that have begun; the first round begins the first."""
        if not self._open:
            self._open = [np.zeros(len(self.spent))]
        return self._open

    def _close(self) -> None:
        """Complete the nodes that end with this round; a level above begins with what is below it."""
        self._rounds += 1
        rounds = self._rounds
        levels = self._levels()
        if rounds & (rounds - 1) == 0:  # the highest level is complete for the first time: the next holds it all
            levels.append(levels[-1].copy())
        for level in range(len(levels)):
            places, rest = divmod(rounds, 1 << level)
            if rest == 0:
                if places % 2:  # the noise of a second half is never used: the node above stands for both
                    self.spent += np.square(levels[level])
                levels[level] = np.zeros(len(self.spent))

    def _epsilon(self, spent: float) -> float:
        return gaussian_epsilon(spent, self.delta)


def relative(noise: Noise, weights: Float64) -> Float64:
    """Return how much each client can change a round's sum, over the deviation of the noise in it: `(clients,)`."""
    if noise.over == 1:
        return pure(noise, weights)
    assert noise.multiplier is not None
    together: Float64 = weights / np.sqrt(np.square(weights).sum())
    return together * sqrt(noise.over) / noise.multiplier


def pure(noise: Noise, weights: Float64) -> Float64:
    """Return how much each client can change a round's sum, over the longest single noise in it: `(clients,)`.

    Of Laplace noise that is epsilon. A sum over j of noises of the scales w_j s has a density that changes by the
    factor exp(D / (s max_j w_j)) at most over a distance D, and by as much in its tails.
    """
    assert noise.multiplier is not None
    if not noise.at_server and noise.over == 1:
        return np.full(len(weights), 1 / noise.multiplier)
    shares: Float64 = weights / weights.max()
    return shares * sqrt(noise.over) / noise.multiplier


def gaussian_epsilon(spent: float, delta: float) -> float:
    """Return epsilon of a Gaussian mechanism whose multiplier is one over the root of `spent`.

    Raises UsageError if the library for it is not installed.
    """
    accounting = needed("dp_accounting", "privacy")
    return float(accounting.get_epsilon_gaussian(1 / sqrt(spent), delta))


def spending_on(
    noise: UpdateTransform | None, clip: UpdateTransform | None, delta: float, unweighted: tuple[bool, ...]
) -> Spending | None:
    """Return what accounts for a kind of noise behind a clip; None if that guarantees nothing that can be counted.

    A class derived from one of these may add other noise, or count otherwise: nothing is known of it.
    """
    counted = clip if isinstance(clip, AdaptiveClip) else None
    if counted is not None and not _counts_with_noise(counted):
        return None
    if type(noise) is TreeNoise and counted is None:
        return TreeSpending(noise, delta, unweighted)
    if not isinstance(noise, Noise) or noise.multiplier is None:
        return None
    if type(noise) is GaussianNoise:
        return GaussianSpending(noise, delta, unweighted, counted)
    return LaplaceSpending(noise, delta, unweighted) if type(noise) is LaplaceNoise else None


def _counts_with_noise(clip: AdaptiveClip) -> bool:
    return type(clip) is AdaptiveClip and clip.count_deviation > 0
