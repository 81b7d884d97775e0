"""One client's model: a chain of convolutions and dense layers, with the backward pass by hand.

On a CPU, convolutions themselves leave little to gain; the gain lies in the operations between them. Images have their
channels last in memory. The maxima of windows are taken before a bias and a ReLU, which commute with them to the bit
and then have a quarter of the work. Activations are changed in place. The gradient of a dense layer, as large as the
layer, is never written out: it is a product of two thin matrices and goes into the weight by `addmm_`; or clients that
began with the same model and make short trips share the layer: see `shared_layer`. Whether they do follows from the
model and the client's workload alone, so that a client's bits do not depend on which others are trained. Large tensors
keep their place in memory from client to client. The arithmetic is otherwise that of `sequential`, the reference it is
tested against.

Shapes: B samples in a batch; images are (B, channels, height, width).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from fedactors.engines.client_batch import ClientBatch
from fedactors.engines.conv_batches import Batch
from fedactors.models.layers import Conv, Dense, Dropout, Flatten, Layer, Model, Pool, Relu
from fedactors.models.network import channels_last, views

_unconvolved = torch.ops.aten.convolution_backward
_unpooled = torch.ops.aten.max_pool2d_with_indices_backward
_unrectified = torch.ops.aten.threshold_backward

Kept = tuple[Tensor, ...]
Kind = Literal["conv", "bias", "pool", "relu", "dropout", "flatten", "dense"]
_KINDS: dict[type[Layer], Kind] = {
    Conv: "conv",
    Pool: "pool",
    Relu: "relu",
    Dropout: "dropout",
    Flatten: "flatten",
    Dense: "dense",
}


class Link(NamedTuple):
    """A piece of the chain: a layer, or a convolution's kernel and bias apart."""

    kind: Kind
    number: int  # of the layer
    layer: Layer
    tensor: int  # number of its first parameter tensor, if it has one


def can(model: Model) -> bool:
    """Whether `model` is a softmax over a chain of convolutions, then dense layers, with what `Kind` lists between."""
    return bool(links(model))


@cache
def links(model: Model) -> tuple[Link, ...]:
    """Return the pieces of a model in the order in which they act; nothing if there is anything else."""
    if model.loss != "cross_entropy" or model.precision == "bf16" or not isinstance(model.layers[-1], Dense):
        return ()
    found = list[Link]()
    tensor = 0
    for number, layer in enumerate(model.layers):
        if type(layer) not in _KINDS:
            return ()
        link = Link(_KINDS[type(layer)], number, layer, tensor)
        found.insert(_place(found) if link.kind == "pool" else len(found), link)
        if isinstance(layer, Conv):
            found.append(link._replace(kind="bias", tensor=tensor + 1))
        tensor += len(layer.tensors())
    return tuple(found) if any(link.kind == "bias" for link in found) else ()


def _place(found: list[Link]) -> int:
    """Return the place of a pool: before the bias and the ReLU that precede it."""
    at = len(found)
    while at and found[at - 1].kind in ("bias", "relu"):
        at -= 1
    return at


def shareable(model: Model) -> Link:
    """Return the layer that clients can share: the first dense one, which tends to be the large one."""
    return next(link for link in links(model) if link.kind == "dense")


def room(model: Model) -> list[Tensor]:
    """Return tensors in which clients' models move, one after the other; no bits depend on the client before."""
    return [channels_last(torch.empty(tensor.shape)) for tensor in model.tensors]


Step = Generator[Tensor, Tensor | None, Tensor]
"""A local step, which waits where a layer is shared; see `ClientModel.step`."""


@dataclass
class ClientModel:
    """One client's model during its trip; the weight of a layer that it shares is not in it."""

    model: Model
    rows: ClientBatch
    row: int
    tensors: list[Tensor]
    shared: Link | None
    gradients: Sequence[Tensor] | None = None  # to which those of each step are added

    def __post_init__(self) -> None:
        self._starts = views(self.model, self.rows.starts[self.row])
        along = self.rows.corrections
        self._corrections = None if along is None else views(self.model, along[self.row])
        self._prox = self.rows.pull_of(self.row)
        self._links = links(self.model)
        self._elsewhere = None if self.shared is None else self.shared.tensor
        for number, (tensor, start) in enumerate(zip(self.tensors, self._starts, strict=True)):
            if number != self._elsewhere:
                tensor.copy_(start)

    def step(self, batch: Batch) -> Step:
        """Take a local step, and return the mean loss of its batch before it, ().

        If a layer is shared, its inputs are yielded and its outputs sent; then the errors at its outputs are yielded
        and those at its inputs sent.
        """
        x, kept = batch.x, list[Kept]()
        for link in self._links:
            if link == self.shared:
                x = _sent((yield x)).add_(self.tensors[link.tensor + 1])
                kept.append(())
            else:
                x, mine = self._forward(link, x, batch.masks)
                kept.append(mine)
        logs = x.log_softmax(1)
        picked, samples = batch.y[:, None], len(batch.y)
        loss = -logs.gather(1, picked).mean()
        error = logs.exp_().scatter_add_(1, picked, logs.new_full((samples, 1), -1.0))
        error.mul_(self.rows.weight / samples)
        for place, link in reversed(list(enumerate(self._links))):
            if link == self.shared:
                self._descend(link.tensor + 1, error.sum(0))
                error = _sent((yield error))
            else:
                error = self._backward(link, error, kept[place], wanted=place > 0)
        return loss

    def add(self, out: Sequence[Tensor], weight: float) -> None:
        """Add weight (y - x) to the tensors `out`, but for the weight that is not here."""
        for number, mine in enumerate(out):
            if number != self._elsewhere:
                mine.add_((self.tensors[number] - self._starts[number]).mul_(weight))

    def _forward(self, link: Link, x: Tensor, masks: Mapping[int, Tensor]) -> tuple[Tensor, Kept]:
        """Return the outputs of a piece for inputs `x`, and what its backward pass needs; `x` may be changed."""
        layer = link.layer
        match link.kind, layer:
            case "conv", Conv():
                return functional.conv2d(x, self.tensors[link.tensor], padding=layer.border), (x,)
            case "bias", _:
                return x.add_(self.tensors[link.tensor][:, None, None]), ()
            case "pool", Pool():
                maxima, places = functional.max_pool2d_with_indices(x, [layer.size] * 2)
                return maxima, (x, places)
            case "relu", _:
                return x.relu_(), (x,)
            case "dropout", _:
                return x.mul_(masks[link.number]), (masks[link.number],)
            case "flatten", _:
                return x.flatten(1), (x,)
        weight, bias = self.tensors[link.tensor : link.tensor + 2]
        return torch.addmm(bias, x, weight.T), (x,)

    def _backward(self, link: Link, error: Tensor, kept: Kept, *, wanted: bool) -> Tensor:
        """Move the parameters of a piece, and return the errors at its inputs, if they are `wanted`."""
        layer = link.layer
        match link.kind, layer:
            case "conv", Conv():
                weight, size = self.tensors[link.tensor], [layer.border] * 2
                needs = [wanted, True, False]
                below, slope, _ = _unconvolved(
                    error, kept[0], weight, None, [1, 1], size, [1, 1], False, [0, 0], 1, needs
                )
                self._descend(link.tensor, slope)
                return below if wanted else error
            case "bias", _:
                self._descend(link.tensor, error.sum((0, 2, 3)))
                return error
            case "pool", Pool():
                size = [layer.size] * 2
                found: Tensor = _unpooled(error, kept[0], size, size, [0, 0], [1, 1], False, kept[1])
                return found
            case "relu", _:
                slopes: Tensor = _unrectified(error, kept[0], 0.0)
                return slopes
            case "dropout", _:
                return error.mul_(kept[0])
            case "flatten", _:
                return channels_last(error.view(kept[0].shape))
        weight = self.tensors[link.tensor]
        below = error @ weight if wanted else error
        self._drift(link.tensor)
        weight.addmm_(error.T, kept[0], alpha=-self.rows.lr)
        if self.gradients is not None:
            self.gradients[link.tensor].addmm_(error.T, kept[0])
        self._descend(link.tensor + 1, error.sum(0))
        return below

    def _descend(self, tensor: int, slope: Tensor) -> None:
        """y <- y - lr (slope + corr + prox (y - x))."""
        self._drift(tensor)
        self.tensors[tensor].sub_(slope, alpha=self.rows.lr)
        if self.gradients is not None:
            self.gradients[tensor].add_(slope)

    def _drift(self, tensor: int) -> None:
        """y <- y - lr (corr + prox (y - x)): all of a step but the gradient."""
        mine, lr = self.tensors[tensor], self.rows.lr
        if self._prox:
            mine.lerp_(self._starts[tensor], lr * self._prox)
        if self._corrections is not None:
            mine.add_(self._corrections[tensor], alpha=-lr)


def _sent(x: Tensor | None) -> Tensor:
    assert x is not None
    return x
