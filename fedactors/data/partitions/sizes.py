"""How many samples each client holds, when the data set does not say.

A law is a pure function of the number of clients and the seed, so that the clock has every client's size
without any sample.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, NonNegativeInt, PositiveInt, Tag, model_validator
from typing_extensions import Self

from fedactors.options import Options
from fedactors.streams import Purpose, stream

Int64 = NDArray[np.int64]

_MOST = 10**12  # samples of one client: beyond any data, and their sum still fits 64 bits
_USUAL = 200  # samples per client where a total is not given, as in Ruan et al.


class Pareto(Options):
    """Shares of a total by Pareto's law, type I (Ruan et al. 2021).

    An index of 0.5 has no finite mean: one client typically holds a third to a half of everything.
    """

    name: Literal["pareto"] = "pareto"
    index: Annotated[float, Field(gt=0)] = 0.5
    """Tail index; the smaller, the more unequal."""
    total: PositiveInt | None = None
    """Samples of all clients together, before `floor` and `cap`; 200 for each client if not given."""
    floor: PositiveInt = 20
    """No client has fewer samples."""
    cap: PositiveInt | None = None
    """No client has more samples."""

    @model_validator(mode="after")
    def _check_cap(self) -> Self:
        if self.cap is not None and self.cap < self.floor:
            raise ValueError(f"cap {self.cap} is below floor {self.floor}")
        return self

    def sizes(self, clients: int, seed: int) -> Int64:
        """Return the samples of each client, `(clients,)`."""
        uniform = 1 - stream(seed, Purpose.SIZES).random(clients)  # on (0, 1]
        logs = -np.log(uniform) / self.index
        weights = np.exp(logs - logs.max())  # z / max z, which cannot overflow; z = U^(-1/index)
        total = _USUAL * clients if self.total is None else self.total
        return _clipped(np.rint(total * weights / weights.sum()), self.floor, self.cap)


class LogNormal(Options):
    """The sizes of the generator of SYNTHETIC (Li et al. 2020): floor(LogNormal(mu, sigma)) + plus."""

    name: Literal["lognormal"] = "lognormal"
    mu: float = 4.0
    """Mean of the logarithm."""
    sigma: Annotated[float, Field(ge=0)] = 2.0
    """Standard deviation of the logarithm."""
    plus: NonNegativeInt = 50
    """Added to every client's draw."""
    cap: PositiveInt | None = None
    """No client has more samples."""

    def sizes(self, clients: int, seed: int) -> Int64:
        """Return the samples of each client, `(clients,)`."""
        draws = stream(seed, Purpose.SIZES).lognormal(self.mu, self.sigma, clients)
        return _clipped(np.floor(draws) + self.plus, 0, self.cap)


def _kind(value: object) -> object:
    """Return which kind of `Samples` is meant, so that errors name that kind only."""
    if isinstance(value, dict):
        return value.get("name")
    return getattr(value, "name", "number")


Samples = Annotated[
    Annotated[PositiveInt, Tag("number")] | Annotated[Pareto, Tag("pareto")] | Annotated[LogNormal, Tag("lognormal")],
    Discriminator(
        _kind,
        custom_error_type="samples",
        custom_error_message="accepted: a number, or a law: {name: pareto, ...} or {name: lognormal, ...}",
    ),
]
"""What a user may write for `samples`: a number for every client, or a law."""


def drawn(samples: int | Pareto | LogNormal, clients: int, seed: int) -> Int64:
    """Return the samples of each client, `(clients,)`: the same number for all, or by a law."""
    if isinstance(samples, int):
        return np.full(clients, samples, dtype=np.int64)
    return samples.sizes(clients, seed)


Concentration = Annotated[float, Field(gt=0, le=1e15)]
"""Of a symmetric Dirichlet law. Shares are even long before this bound; floats of many times as much are infinite."""


def even(total: int, clients: int) -> Int64:
    """Return `total` cut into `(clients,)` sizes that differ by one at most; the first ones get one more."""
    return total // clients + (np.arange(clients) < total % clients).astype(np.int64)


def dirichlet_sizes(alpha: float, total: int, clients: int, seed: int, least: int = 1) -> Int64:
    """Return `total` cut into `(clients,)` sizes, their shares drawn from a symmetric Dirichlet law.

    Everybody has `least` samples, if there are so many; what is beyond is shared by the law, in whole samples that are
    nearest to it.
    """
    floor = least if least * clients <= total else 0
    rest = total - floor * clients
    wanted = rest * stream(seed, Purpose.SIZES).dirichlet(np.full(clients, alpha))
    sizes = np.floor(wanted).astype(np.int64)
    missing = rest - int(sizes.sum())
    sizes[np.argsort(sizes - wanted, kind="stable")[:missing]] += 1  # the largest remainders
    return sizes + floor


def _clipped(sizes: NDArray[np.float64], floor: int, cap: int | None) -> Int64:
    most = _MOST if cap is None else min(cap, _MOST)
    return np.clip(np.nan_to_num(sizes, nan=_MOST), min(floor, _MOST), most).astype(np.int64)
