"""Loops for the CIFAR CNN, one client after the other; dropout can be switched off to compare their updates."""

from __future__ import annotations

import numpy as np
import torch
from common import JOBS, module
from loops.work import Loop, Work, lean_loop
from torch import Tensor, nn
from torch.nn import functional

_backward = torch.ops.aten.convolution_backward
_unpool = torch.ops.aten.max_pool2d_with_indices_backward


def variants(*, training: bool) -> dict[str, tuple[Loop, tuple[int, ...]]]:
    """Return name -> (loop, chunk sizes)."""
    network = module(JOBS["cnn"]).train(training)
    return {
        "channels last": (channels_last_loop(network), (1,)),
        "compiled": (channels_last_loop(network, compiled=True), (1,)),
        "by hand": (hand_loop(dropout=training), (1,)),
        "by hand, no dropout": (hand_loop(dropout=False), (1,)),
    }


def channels_last_loop(network: nn.Module, *, compiled: bool = False) -> Loop:
    """Return the lean loop with images and kernels in the order (height, width, channels)."""
    network = network.to(memory_format=torch.channels_last)
    if compiled:
        network = torch.compile(network)
    lean = lean_loop(network)

    def loop(work: Work) -> tuple[list[Tensor], float]:
        return lean(_reordered(work))

    return loop


def _reordered(work: Work) -> Work:
    """Return `work` with every client's images in channels-last order; done once, like moving them to a device."""
    if work.x.is_contiguous():
        clients, samples = work.x.shape[:2]
        ordered = work.x.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        object.__setattr__(work, "x", ordered.unflatten(0, (clients, samples)))
    return work


def hand_loop(*, dropout: bool) -> Loop:
    """Return the loop with the backward pass by hand.

    Channels last; maxima are taken before bias and ReLU, which commute with them and then have a quarter of the
    work; dense gradients go into their weights as they are formed; masks come from bytes of a counter-based
    generator, since 1/4 and 1/2 are whole numbers of 256ths.
    """

    def loop(work: Work) -> tuple[list[Tensor], float]:
        _reordered(work)
        draws = np.random.Generator(np.random.Philox(0))
        sums, total = [torch.zeros_like(tensor) for tensor in work.model], torch.zeros(())
        for client, order in zip(work.cohort, work.order, strict=True):
            x, hot = work.x[client], functional.one_hot(work.y[client], 10).float()
            moving = [_last(tensor).clone() for tensor in work.model]
            second = _Direct()
            for chosen in order.split(work.batch):
                masks = (_mask(draws, (work.batch, 64, 8, 8), 0.25), _mask(draws, (work.batch, 128), 0.5))
                images = _last(x[chosen])
                total += _step(moving, images, hot[chosen], masks if dropout else None, work.lr / work.batch, second)
            torch._foreach_add_(sums, moving, alpha=1 / len(work.cohort))
        torch._foreach_sub_(sums, work.model)
        return sums, float(total) / work.order.numel()

    return loop


def _last(tensor: Tensor) -> Tensor:
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


def _mask(draws: np.random.Generator, shape: tuple[int, ...], rate: float) -> Tensor:
    """Return 0 for a share `rate` and 1 / (1 - rate) for the others."""
    count = int(np.prod(shape))
    words = draws.bit_generator.random_raw(-(-count // 8))
    kept = np.multiply(words.view(np.uint8)[:count] >= round(rate * 256), np.float32(1 / (1 - rate)))
    if len(shape) == 2:
        return torch.from_numpy(kept).view(shape)
    images, channels, height, width = shape
    return torch.from_numpy(kept).view(images, height, width, channels).permute(0, 3, 1, 2)  # channels last


class _Direct:
    """The second convolution and the maxima behind it, by torch."""

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        self._x, self._weight = x, weight
        self._z = functional.conv2d(x, weight, None, padding=1)
        most, self._places = functional.max_pool2d(self._z, 2, return_indices=True)
        return most

    def backward(self, error: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient of the kernel and the error below."""
        spread = _unpool(error, self._z, [2, 2], [2, 2], [0, 0], [1, 1], False, self._places)
        below, slope, _ = _convolved_back(spread, self._x, self._weight, wants_input=True)
        return slope, below


def _step(
    moving: list[Tensor],
    x: Tensor,
    hot: Tensor,
    masks: tuple[Tensor, Tensor] | None,
    rate: float,
    second: _Direct,
) -> Tensor:
    """Take one step and return the sum of the samples' losses."""
    w1, b1, w2, b2, w3, b3, w4, b4 = moving
    z1 = functional.conv2d(x, w1, None, padding=1)
    p1, i1 = functional.max_pool2d(z1, 2, return_indices=True)
    p1.add_(b1[:, None, None]).relu_()
    p2 = second.forward(p1, w2)
    p2.add_(b2[:, None, None]).relu_()
    features = (p2 * masks[0] if masks else p2).flatten(1)
    h = torch.addmm(b3, features, w3.T).relu_()
    hidden = h * masks[1] if masks else h
    logs = torch.addmm(b4, hidden, w4.T).log_softmax(1)

    e4 = logs.exp().sub_(hot)
    e3 = (e4 @ w4).mul_(h > 0)
    e3 = e3.mul_(masks[1]) if masks else e3
    e2 = _last((e3 @ w3).view_as(p2)).mul_(p2 > 0)
    e2 = e2.mul_(masks[0]) if masks else e2
    _descend(w4, b4, e4, hidden, rate)
    _descend(w3, b3, e3, features, rate)
    d2, e1 = second.backward(e2)
    e1.mul_(p1 > 0)
    g1 = _unpool(e1, z1, [2, 2], [2, 2], [0, 0], [1, 1], False, i1)
    _, d1, _ = _convolved_back(g1, x, w1, wants_input=False)
    for weight, bias, kernel, error in ((w1, b1, d1, e1), (w2, b2, d2, e2)):
        weight.sub_(kernel, alpha=rate)
        bias.sub_(error.sum((0, 2, 3)), alpha=rate)
    return -(logs * hot).sum()


def _descend(weight: Tensor, bias: Tensor, error: Tensor, inputs: Tensor, rate: float) -> None:
    weight.addmm_(error.T, inputs, alpha=-rate)
    bias.sub_(error.sum(0), alpha=rate)


def _convolved_back(gradient: Tensor, x: Tensor, weight: Tensor, *, wants_input: bool) -> tuple[Tensor, ...]:
    wanted = [wants_input, True, False]
    return _backward(gradient, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, wanted)
