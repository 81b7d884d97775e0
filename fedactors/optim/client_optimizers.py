"""Client optimisers: pure functions of (params, grad, state), the same for one client and for rows of many.

A model is one flat vector; `params`, `grad` and every vector of a `state` have the shape `(parameters,)`, or
`(clients, parameters)` for several clients. Every operation is elementwise or a norm over a run of the last axis, so
that clients are never mixed. Layers are runs of that axis: the model's named parameter tensors, in order.
Nothing is changed in place: a step returns unchanged values as the same objects.

torch is imported when a step is taken, not before: a scenario is checked without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from fedactors.models.layers import Layers
from fedactors.options import Options

if TYPE_CHECKING:
    from torch import Tensor

    State = Mapping[str, Tensor]
    Stepped = tuple[Tensor, State]  # params, state
    Count = int | Tensor  # of steps: one number, or a float64 of each client, (clients, 1)

Decay = Annotated[float, Field(ge=0.0, le=1.0)]  # of a running mean
Penalty = Annotated[float, Field(ge=0.0)]  # lambda, of lambda / 2 |y|^2


WHOLE = Layers()  # all parameters are one layer


class Optimizer(Options):
    """Base of all client optimisers."""

    holds: ClassVar[tuple[str, ...]] = ()
    """Names of the state's vectors; each is zero at the start of a trip unless the algorithm gives another one."""

    name: str

    @property
    def plain(self) -> bool:
        """Whether a step is y <- y - lr g and nothing else, which fast engines compute in place."""
        return False

    @property
    def follows_gradient(self) -> bool:
        """Whether a step is -lr times a gradient at y, of the loss with or without a penalty."""
        return False

    @property
    def vectors(self) -> tuple[str, ...]:
        """The names in `holds` that are used under these options."""
        return self.holds

    def step(self, params: Tensor, grad: Tensor, state: State, lr: float, number: Count, layers: Layers) -> Stepped:
        """Return (params, state) after local step `number` of the trip, or of its phase, from 1, along `grad`."""
        raise TypeError(f"{type(self).__name__} does not say how it steps")


class SGD(Optimizer):
    """y <- y - lr g; with a penalty and momentum, which torch.optim.SGD has too, in its order.

    g <- g + lambda y ; m <- momentum m + (1 - dampening) g ; y <- y - lr m, or along g + momentum m (Nesterov).

    The first gradient of a trip is not dampened.
    """

    holds: ClassVar[tuple[str, ...]] = ("m",)

    name: Literal["sgd"] = "sgd"
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """What is left of the momentum after a step; it starts from zero in every trip."""
    weight_decay: Penalty = 0.0
    """Weight of the parameters in every gradient (lambda)."""
    dampening: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """What part of each further gradient the momentum leaves out."""
    nesterov: bool = False
    """Look ahead: step along g + momentum m."""

    @model_validator(mode="after")
    def _check_momentum_options(self) -> SGD:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs momentum above 0")
        if self.dampening and (not self.momentum or self.nesterov):
            raise ValueError("dampening needs momentum above 0, without nesterov")
        return self

    @property
    def plain(self) -> bool:
        """Whether there is neither momentum nor a penalty."""
        return not self.momentum and not self.weight_decay

    @property
    def follows_gradient(self) -> bool:
        """Whether there is no momentum."""
        return not self.momentum

    @property
    def vectors(self) -> tuple[str, ...]:
        """The momentum, if there is one."""
        return self.holds if self.momentum else ()

    def step(self, params: Tensor, grad: Tensor, state: State, lr: float, number: Count, layers: Layers) -> Stepped:
        """Return params - lr (grad + lambda params), or along the new m."""
        if self.weight_decay:
            grad = grad.add(params, alpha=self.weight_decay)
        if not self.momentum:
            return params.add(grad, alpha=-lr), state
        new = grad.mul(1 - self.dampening * (number > 1)) if self.dampening else grad
        return _with_momentum(params, grad, new, state, lr, self.momentum, nesterov=self.nesterov)


class ClientMomentum(Optimizer):
    """m <- beta m + g ; y <- y - lr m (Polyak 1964), or along g + beta m: `sgd` with `momentum`, by another name."""

    holds: ClassVar[tuple[str, ...]] = ("m",)

    name: Literal["momentum"] = "momentum"
    beta: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.9
    """What is left of the momentum after a step."""
    nesterov: bool = False
    """Look ahead: step along g + beta m."""

    def step(self, params: Tensor, grad: Tensor, state: State, lr: float, number: Count, layers: Layers) -> Stepped:
        """Return params - lr m, with the new m."""
        return _with_momentum(params, grad, grad, state, lr, self.beta, nesterov=self.nesterov)


def _with_momentum(
    params: Tensor, grad: Tensor, new: Tensor, state: State, lr: float, beta: float, *, nesterov: bool
) -> Stepped:
    """m <- beta m + new ; return params - lr m, or along grad + beta m (Nesterov), and the new m."""
    m = new.add(state["m"], alpha=beta)
    along = grad.add(m, alpha=beta) if nesterov else m
    return params.add(along, alpha=-lr), {**state, "m": m}


class Adaptive(Optimizer):
    """What the optimisers with running means of gradients and of their squares share."""

    beta1: Decay = 0.9
    """Decay of the mean of gradients, m."""
    beta2: Decay = 0.999
    """Decay of the mean of squared gradients, v."""
    eps: float = Field(default=1e-8, ge=0.0)
    """Added to square roots of v."""

    def moments(self, grad: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """m <- b1 m + (1 - b1) g ; v <- b2 v + (1 - b2) g^2."""
        m = state["m"].mul(self.beta1).add_(grad, alpha=1 - self.beta1)
        v = state["v"].mul(self.beta2).addcmul(grad, grad, value=1 - self.beta2)
        return m, v

    def ratio(self, m: Tensor, v: Tensor, number: Count) -> Tensor:
        """Return mh / (sqrt(vh) + eps) with both means corrected for their start from zero."""
        root = v.sqrt().div_(_seen(self.beta2, number) ** 0.5)
        return m.div(root.add_(self.eps)).div_(_seen(self.beta1, number))


class ClientAdam(Adaptive):
    """Adam: Kingma and Ba 2015, Algorithm 1."""

    holds: ClassVar[tuple[str, ...]] = ("m", "v")

    name: Literal["adam"] = "adam"
    weight_decay: Penalty = 0.0
    """Weight of the parameters in every gradient (lambda), as in torch.optim.Adam."""

    def step(self, params: Tensor, grad: Tensor, state: State, lr: float, number: Count, layers: Layers) -> Stepped:
        """Return params - lr mh / (sqrt(vh) + eps), the means being of grad + lambda params."""
        if self.weight_decay:
            grad = grad.add(params, alpha=self.weight_decay)
        m, v = self.moments(grad, state)
        return params.add(self.ratio(m, v, number), alpha=-lr), {"m": m, "v": v}


class ClientAdamW(Adaptive):
    """AdamW: Loshchilov and Hutter 2019, Algorithm 2; the penalty shrinks parameters and is in no mean."""

    holds: ClassVar[tuple[str, ...]] = ("m", "v")

    name: Literal["adamw"] = "adamw"
    weight_decay: Penalty = 0.01
    """What part of the parameters each step takes away, times lr (lambda)."""

    def step(self, params: Tensor, grad: Tensor, state: State, lr: float, number: Count, layers: Layers) -> Stepped:
        """Return (1 - lr lambda) params - lr mh / (sqrt(vh) + eps)."""
        m, v = self.moments(grad, state)
        kept = params.mul(1 - lr * self.weight_decay)
        return kept.add(self.ratio(m, v, number), alpha=-lr), {"m": m, "v": v}


class AMSGrad(Adaptive):
    """AMSGrad: Reddi, Kale and Kumar 2018, Algorithm 2, bias-corrected as in torch.optim.Adam(amsgrad=True)."""

    holds: ClassVar[tuple[str, ...]] = ("m", "v", "vhat")

    name: Literal["amsgrad"] = "amsgrad"

    def step(self, params: Tensor, grad: Tensor, state: State, lr: float, number: Count, layers: Layers) -> Stepped:
        """vhat <- max(vhat, v) ; return params - lr mh / (sqrt(vhat / (1 - b2^t)) + eps)."""
        m, v = self.moments(grad, state)
        vhat = state["vhat"].maximum(v)
        return params.add(self.ratio(m, vhat, number), alpha=-lr), {"m": m, "v": v, "vhat": vhat}


class Layerwise(Options):
    """Options of steps whose length is set layer by layer: phi, weight decay, and what a layer is."""

    weight_decay: float = Field(default=0.0, ge=0.0)
    """Weight of the parameters in the direction of a step (lambda)."""
    phi: Literal["identity", "one", "clip"] = "identity"
    """How a layer's norm becomes the length of its step: itself, 1, or itself within [phi_min, phi_max]."""
    phi_min: float | None = Field(default=None, ge=0.0)
    phi_max: float | None = Field(default=None, gt=0.0)
    layer: Literal["tensor", "module"] = "tensor"
    """What is scaled as one: each parameter tensor, or the tensors of a layer together."""

    @model_validator(mode="after")
    def _check_phi_bounds(self) -> Layerwise:
        if (self.phi == "clip") != (self.phi_max is not None):
            raise ValueError("phi_max goes with phi: clip, and phi: clip with phi_max")
        if self.phi_min is not None and (self.phi_max is None or self.phi_min > self.phi_max):
            raise ValueError("phi_min needs phi: clip and a phi_max that is not below it")
        return self

    def scaled(self, params: Tensor, ratio: Tensor, layers: Layers) -> Tensor:
        """Return phi(|th|) u / |u| for each layer, with u = r + lambda th."""
        along = ratio.add(params, alpha=self.weight_decay) if self.weight_decay else ratio
        return layerwise(params, along, layers.module if self.layer == "module" else layers.tensor, self.length)

    def length(self, norm: Tensor) -> Tensor:
        """phi."""
        if self.phi == "identity":
            return norm
        return norm.new_ones(norm.shape) if self.phi == "one" else norm.clamp(self.phi_min, self.phi_max)


class Lamb(Layerwise, Adaptive):
    """LAMB: You et al. 2020, Algorithm 2: Adam's direction, and the length of a layer's step from its norm."""

    holds: ClassVar[tuple[str, ...]] = ("m", "v")

    name: Literal["lamb"] = "lamb"

    def step(self, params: Tensor, grad: Tensor, state: State, lr: float, number: Count, layers: Layers) -> Stepped:
        """Return th - lr phi(|th|) u / |u| layer by layer, with u = mh / (sqrt(vh) + eps) + lambda th."""
        m, v = self.moments(grad, state)
        along = self.scaled(params, self.ratio(m, v, number), layers)
        return params.add(along, alpha=-lr), {"m": m, "v": v}


def layerwise(params: Tensor, along: Tensor, layers: Sequence[int], phi: Callable[[Tensor], Tensor]) -> Tensor:
    """Return phi(|th|) u / |u| for each of the `layers`, runs of the last axis.

    u = 0 stays 0. A layer whose phi is 0 would never move (a bias that starts from zero, under the identity): it takes
    u as it is, trust ratio 1, the convention of LAMB's authors.
    """
    import torch

    runs = list(layers) or [params.shape[-1]]
    parts = []
    for layer, u in zip(torch.split(params, runs, -1), torch.split(along, runs, -1), strict=True):
        wanted, length = phi(layer.norm(dim=-1, keepdim=True)), u.norm(dim=-1, keepdim=True)
        parts.append(u * torch.where((wanted > 0) & (length > 0), wanted / length, 1.0))
    return torch.cat(parts, -1)


def _seen(beta: float, number: Count) -> float | Tensor:
    """Return the weight of all gradients in a running mean of `number` of them; 1 for a mean that takes none."""
    seen: float | Tensor = 1 - beta**number
    return seen + (seen == 0)


PLAIN = SGD()
