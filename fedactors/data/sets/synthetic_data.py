"""SYNTHETIC(alpha, beta): classification data that are made client by client.

Source: Li et al., "Federated Optimization in Heterogeneous Networks" (FedProx, MLSys 2020), and the authors'
generator. For client k:

    u_k ~ Normal(0, alpha)       how its model differs from the others'
    B_k ~ Normal(0, beta)        how its inputs differ from the others'
    v_k ~ Normal(B_k, 1)^60      mean of its inputs
    W_k ~ Normal(u_k, 1)^(60x10), b_k ~ Normal(u_k, 1)^10
    x ~ Normal(v_k, diag(j^-1.2)),  y = argmax(W_k^T x + b_k)

alpha and beta are standard deviations, as in the generator; the paper's N(0, alpha) reads as a variance,
which is the option `variance`. The first nine tenths of a client's samples are for training. The generator
shuffles them before; they are independent and identically distributed, so that would change nothing.

A consequence that the papers do not mention: u_k adds the same number to all ten logits, so alpha moves no
label. Clients differ by their own W_k and b_k even for alpha = 0, and by beta.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedactors.data.base import Data, Info, Int64
from fedactors.data.partitions.sizes import LogNormal, Samples, drawn
from fedactors.options import Options
from fedactors.streams import Purpose, stream

Float64 = NDArray[np.float64]

_INPUTS, _CLASSES = 60, 10
_SCALE = np.arange(1, _INPUTS + 1) ** -0.6  # standard deviations: the square roots of j^-1.2
_SHARED = 1  # round number of the stream from which the model of the iid variant is drawn; clients use 0


class _Truth(NamedTuple):
    """What makes one client's data."""

    mean: Float64  # v_k, (60,)
    weights: Float64  # W_k, (60, 10)
    bias: Float64  # b_k, (10,)


class SyntheticData(Options):
    """SYNTHETIC(alpha, beta) of Li et al. (2020): 60 inputs, 10 classes, one distribution for each client.

    SYNTHETIC(0, 0) still gives every client its own model and mean; only `iid` shares them.
    """

    name: Literal["synthetic"] = "synthetic"
    alpha: Annotated[float, Field(ge=0)] = 1.0
    """Spread of the clients' models."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """Spread of the clients' inputs."""
    iid: bool = False
    """One model and one distribution of inputs for all clients; alpha and beta are ignored."""
    variance: bool = False
    """Read alpha and beta as variances, not as standard deviations."""
    isotropic: bool = False
    """Inputs of every client are Normal(0, 1)^60: clients differ by their models alone, and no direction is slow."""
    samples: Samples = LogNormal()
    """Samples of each client, training and test together: a number, or a law."""

    test_clients: Annotated[int, Field(ge=1)] | None = None
    """The test set is that of so many clients, the first ones; None for all. In a large population most of the time
    before the first round goes into the test samples of all clients."""

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes and shapes of the data of `clients` clients, without making them."""
        source = self.on_demand(seed, clients)
        total, tested = int(source.sizes.sum()), int(source.test_sizes.sum())
        return Info("synthetic", total, tested, (_INPUTS,), _CLASSES, client_sizes=source.sizes)

    def check(self) -> None:
        """Look for nothing: the data are made."""

    def load(self, seed: int, clients: int) -> Data:
        """Return the data of `clients` clients; those of one do not depend on how many others there are."""
        source = self.on_demand(seed, clients)
        return source.collected(source.sizes)

    def on_demand(self, seed: int, clients: int) -> SyntheticClients:
        """Return what makes the samples of one client after the other."""
        return SyntheticClients(self, seed, drawn(self.samples, clients, seed), self.test_clients or clients)

    def client(self, seed: int, client: int, samples: int) -> tuple[Float64, Int64]:
        """Return the inputs `(samples, 60)` and labels `(samples,)` of one client."""
        draws = stream(seed, Purpose.DATASET, client)
        truth = _shared_truth(seed) if self.iid else self._own_truth(draws)
        x = draws.standard_normal((samples, _INPUTS))
        if not self.isotropic:
            x *= _SCALE
            x += truth.mean
        return x, np.argmax(x @ truth.weights + truth.bias, axis=1)

    def _own_truth(self, draws: np.random.Generator) -> _Truth:
        alpha, beta = (sqrt(s) if self.variance else s for s in (self.alpha, self.beta))
        model, inputs = alpha * draws.standard_normal(), beta * draws.standard_normal()  # u_k, B_k
        return _Truth(
            mean=inputs + draws.standard_normal(_INPUTS),
            weights=model + draws.standard_normal((_INPUTS, _CLASSES)),
            bias=model + draws.standard_normal(_CLASSES),
        )


@dataclass(frozen=True, eq=False)
class SyntheticClients:
    """Makes the samples of one client after the other; see `fedactors.data.on_demand.ClientSource`."""

    options: SyntheticData
    seed: int
    held: Int64  # (clients,): samples of each, training and test together
    test_clients: int  # those whose test samples are in the test set: the first ones

    @cached_property
    def sizes(self) -> Int64:
        """Training samples of each client, (clients,): floor(0.9 n), in integers."""
        return self.held * 9 // 10

    @cached_property
    def test_sizes(self) -> Int64:
        """Test samples of each client, (clients,)."""
        tested = self.held - self.sizes
        tested[self.test_clients :] = 0
        return tested

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return (_INPUTS,)

    def samples(self, client: int) -> tuple[Float64, Int64]:
        """Return the training samples `(n, 60)` and labels `(n,)` of one client."""
        x, y = self._all(client)
        train = self.sizes[client]
        return x[:train], y[:train]

    def tests(self) -> Data:
        """Return the test set, without training samples."""
        return self.collected(0 * self.sizes)

    def collected(self, sizes: Int64) -> Data:
        """Return the first `sizes` training samples of each client, (clients,), and the test set."""
        bounds, test_bounds = _bounds(sizes), _bounds(self.test_sizes)
        data = Data(
            x=np.empty((bounds[-1], _INPUTS), dtype=np.float32),
            y=np.empty(bounds[-1], dtype=np.int64),
            test_x=np.empty((test_bounds[-1], _INPUTS), dtype=np.float32),
            test_y=np.empty(test_bounds[-1], dtype=np.int64),
            classes=_CLASSES,
            clients=bounds,
            test_clients=test_bounds,
        )
        for k in np.flatnonzero(sizes + self.test_sizes).tolist():
            x, y = self._all(k)
            mine = slice(bounds[k], bounds[k + 1])
            data.x[mine] = x[: sizes[k]]
            data.y[mine] = y[: sizes[k]]
            tested = slice(test_bounds[k], test_bounds[k + 1])
            held_out = slice(self.sizes[k], self.sizes[k] + self.test_sizes[k])
            data.test_x[tested] = x[held_out]
            data.test_y[tested] = y[held_out]
        return data

    def _all(self, client: int) -> tuple[Float64, Int64]:
        return self.options.client(self.seed, client, int(self.held[client]))


def _shared_truth(seed: int) -> _Truth:
    draws = stream(seed, Purpose.DATASET, round=_SHARED)
    weights = draws.standard_normal((_INPUTS, _CLASSES))
    return _Truth(np.zeros(_INPUTS), weights, draws.standard_normal(_CLASSES))


def _bounds(sizes: Int64) -> Int64:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
