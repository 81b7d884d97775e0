"""Optimisers of a server as pure functions: SERVEROPT, MERGEOPT and CENTRALOPT of mixed federated learning.

Sources: Reddi et al., Adaptive Federated Optimization, 2021, Algorithm 2 (FedAdagrad, FedAdam, FedYogi); Hsu et al.,
Measuring the Effects of Non-Identical Data Distribution, 2019 (server momentum, FedAvgM). With the pseudo-gradient g
(a server's: minus the aggregated update) and everything elementwise:

    sgd        x <- x - lr g
    momentum   m <- beta m + g                                   ; x <- x - lr m
    adam       m <- b1 m + (1-b1) g ; v <- b2 v + (1-b2) g^2      ; x <- x - lr m / (sqrt(v) + tau)
    yogi       as adam, but         v <- v - (1-b2) g^2 sign(v - g^2)
    adagrad    as adam, but         v <- v + g^2

m = 0 and v = tau^2 at the start, and no bias correction, as Reddi et al. have it. Adam with `bias_correction` is the
libraries' Adam: v = 0 at the start, m and v divided by 1 - b^t. What an optimiser keeps is a mapping of named tensors,
an argument and a result; the step count t is one of them, of shape (1,).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from fedactors.options import Options

if TYPE_CHECKING:
    from torch import Tensor

    Slots = Mapping[str, Tensor]

Rate = Annotated[float, Field(ge=0.0, lt=1e38)]
Decay = Annotated[float, Field(ge=0.0, le=1.0)]
Forgetting = Annotated[float, Field(ge=0.0, lt=1.0)]


class Sgd(Options):
    """Gradient descent: x <- x - lr g; with lr = 1 a server adds the update as it is."""

    adaptive: ClassVar[bool] = False
    """Whether steps have lengths of their own, whatever that of the gradient."""

    name: Literal["sgd"] = "sgd"
    lr: Rate = 1.0

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """Return what is kept before the first step: nothing."""
        return {}

    def step(self, x: Tensor, gradient: Tensor, slots: Slots) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the next x and what is kept then; all vectors are of the shape of `x`."""
        return x - self.lr * gradient, {}


class ServerMomentum(Options):
    """Heavy ball: m <- beta m + g ; x <- x - lr m (FedAvgM)."""

    adaptive: ClassVar[bool] = False

    name: Literal["momentum"] = "momentum"
    lr: Rate = 1.0
    beta: Forgetting = 0.9

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """Return m = 0."""
        return {"m": x.new_zeros(x.shape)}

    def step(self, x: Tensor, gradient: Tensor, slots: Slots) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the next x and m."""
        m = self.beta * slots["m"] + gradient
        return x - self.lr * m, {"m": m}


class _Adaptive(Options):
    """What Adam, Yogi and Adagrad share: x <- x - lr m / (sqrt(v) + tau)."""

    adaptive: ClassVar[bool] = True

    lr: Rate = 0.01
    b1: Forgetting = 0.9
    """Decay of the mean of gradients."""
    tau: Annotated[float, Field(ge=0.0)] = 1e-3
    """Degree of adaptivity: the smaller, the more adaptive."""

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """Return m = 0, v = tau^2."""
        return {"m": x.new_zeros(x.shape), "v": x.new_full(x.shape, self.tau**2)}

    def step(self, x: Tensor, gradient: Tensor, slots: Slots) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the next x, m and v. Where m is 0, x stays, even if v and tau are 0 as well."""
        m = self.b1 * slots["m"] + (1 - self.b1) * gradient
        v = self._spread(slots["v"], gradient**2)
        return self._moved(x, m, v, self.lr), {"m": m, "v": v}

    def _spread(self, v: Tensor, square: Tensor) -> Tensor:
        """Return the next v, given g^2."""
        raise NotImplementedError

    def _moved(self, x: Tensor, m: Tensor, v: Tensor, lr: float) -> Tensor:
        import torch

        scale = v.sqrt() + self.tau
        return x - lr * torch.where(m == 0, m, m / scale)


class ServerAdam(_Adaptive):
    """FedAdam; with `bias_correction` the Adam of libraries."""

    name: Literal["adam"] = "adam"
    b2: Decay = 0.99
    """Decay of the mean of squares; 1 leaves v where it started."""
    bias_correction: bool = False
    """Divide m and v by 1 - b^t, and start from v = 0."""

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """Return m = 0, v = tau^2; with bias correction v = 0 and t = 0."""
        if not self.bias_correction:
            return super().start(x)
        return {"m": x.new_zeros(x.shape), "v": x.new_zeros(x.shape), "t": x.new_zeros(1)}

    def step(self, x: Tensor, gradient: Tensor, slots: Slots) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the next x, m, v and t."""
        after, kept = super().step(x, gradient, slots)
        if not self.bias_correction:
            return after, kept
        t = slots["t"] + 1
        done = float(t)
        m, v = kept["m"] / (1 - self.b1**done), kept["v"] / (1 - self.b2**done if self.b2 < 1 else 1.0)
        return self._moved(x, m, v, self.lr), {**kept, "t": t}

    def _spread(self, v: Tensor, square: Tensor) -> Tensor:
        return self.b2 * v + (1 - self.b2) * square


class Yogi(_Adaptive):
    """FedYogi: v follows g^2 by steps that do not depend on how far away it is."""

    name: Literal["yogi"] = "yogi"
    b2: Decay = 0.99
    """One minus the rate at which v follows."""

    def _spread(self, v: Tensor, square: Tensor) -> Tensor:
        return v - (1 - self.b2) * square * (v - square).sign()


class Adagrad(_Adaptive):
    """FedAdagrad: v adds up all g^2; no momentum unless b1 is given."""

    name: Literal["adagrad"] = "adagrad"
    b1: Forgetting = 0.0
    """Decay of the mean of gradients."""

    def _spread(self, v: Tensor, square: Tensor) -> Tensor:
        return v + square


def _named(value: Any) -> Any:
    """Let a bare name stand for an optimiser with its defaults."""
    return {"name": value} if isinstance(value, str) else value


def only(name: str) -> BeforeValidator:
    """Return what lets a bare `name` stand for the optimiser of that name, and refuses others with a ValueError."""

    def one(value: Any) -> Any:
        found = _named(value)
        asked = found.get("name", name) if isinstance(found, Mapping) else getattr(found, "name", found)
        if asked != name:
            raise ValueError(f'found "{asked}" (accepted: {name}, or its options)')
        return found

    return BeforeValidator(one)


ServerOptimizer = Annotated[
    Annotated[Sgd | ServerMomentum | ServerAdam | Yogi | Adagrad, Field(discriminator="name")], BeforeValidator(_named)
]
"""What a user may write for an optimiser of the server: a name, or a mapping with its options."""


def split(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the slots of an optimiser from a state that holds them as `prefix.slot`."""
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in state.items() if name.startswith(start)}


def joined(slots: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return `slots` under the names that `split` expects."""
    return {f"{prefix}.{name}": value for name, value in slots.items()}
