"""Dropout masks that depend on their coordinates only: (client and round, layer, step, element).

A generator would give a client other masks when others share its chunk, and CUDA other masks than the CPU. A
hash of the coordinates gives the same bits wherever it is evaluated, in any order, alone or under
`torch.func.vmap`. Integers are signed, because torch has hardly any unsigned arithmetic: their products wrap at 64
and, for every element, at 32 bits.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedactors.streams import Purpose, stream

_LAYERS = 64  # layer numbers are below this, so that (step, layer) is one counter
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # as the int64 of the same bits
_SPLIT_1 = 0xBF58476D1CE4E5B9 - 2**64
_SPLIT_2 = 0x94D049BB133111EB - 2**64
_LOW_1 = 0x7FEB352D
_LOW_2 = 0x846CA68B - 2**32  # as the int32 of the same bits
_SIGN = -(2**31)
_LOW, _WORD = 2**32 - 1, 2**64 - 1

UInt32 = NDArray[np.uint32]


@dataclass
class MaskStep:
    """What names the masks of one forward pass: see `dropped`. Those of one pass are numbered as they come."""

    key: Tensor
    layer: int
    step: int | Tensor
    masks: int = 0

    def next_key(self) -> Tensor:
        """Return the key of the next mask."""
        self.masks += 1
        return self.key + ((self.masks * _GOLDEN + 2**63) % 2**64 - 2**63)


current_step: ContextVar[MaskStep | None] = ContextVar("current_step", default=None)


class StreamDropout(nn.Module):
    """`nn.Dropout` whose masks come from the streams of the run."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.p = rate

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` with a share `p` of its values set to zero, in training."""
        now = current_step.get()
        if not self.training or now is None or not self.p:
            return x
        return dropped(x, self.p, now.next_key(), now.layer, now.step)


def key(seed: int, client: int, round: int) -> int:
    """Return the int64 key of a client's masks in one round."""
    return int(stream(seed, Purpose.DROPOUT, client, round).integers(-(2**63), 2**63))


def dropped(x: Tensor, rate: float, keys: Tensor, layer: int, step: int | Tensor) -> Tensor:
    """Return `x` with a share `rate` of its elements set to zero and the others scaled by `1 / (1 - rate)`.

    `x` is `(batch, *shape)`, `keys` an int64 of shape (), `layer` is below 64, `step` an int or int64 of
    shape ().
    """
    kept = mask(x.numel(), rate, keys, layer, step).view(x.shape)
    return x * (kept.to(x.dtype) * (1 / (1 - rate)))


def mask(elements: int, rate: float, keys: Tensor, layer: int, step: int | Tensor) -> Tensor:
    """Return which of `elements` survive, `(elements,)` bool; each does with probability `1 - rate`."""
    index = torch.arange(elements, dtype=torch.int32, device=keys.device)
    least = min(round(rate * 2**32) - 2**31, 2**31 - 1)
    return hashed(index, keys, layer, step) ^ _SIGN >= least  # as unsigned words are compared


def hashed(index: Tensor, keys: Tensor, layer: int, step: int | Tensor) -> Tensor:
    """Return 32 pseudo-random bits, an int32, for each element of `index`, int32.

    The coordinates become 64 bits by the finaliser of splitmix64 (Steele et al. 2014). Its low word is mixed
    with the index by lowbias32 (Wellons 2018); its high word enters between that function's two products, so
    that all 64 bits tell masks apart.
    """
    words = _splitmix(keys + _wrapped((step * _LAYERS + layer + 1) * _GOLDEN))
    low, high = words.to(torch.int32), (words >> 32).to(torch.int32)
    x = index ^ low
    x = (x ^ _shifted(x, 16)) * _LOW_1
    x = x ^ high
    x = (x ^ _shifted(x, 15)) * _LOW_2
    return x ^ _shifted(x, 16)


class Masks:
    """The same masks for one client at a time on a CPU, scaled; those of images have the channels last in memory."""

    def __init__(self) -> None:
        self._numbers = dict[tuple[int, ...], UInt32]()

    def of(self, shape: tuple[int, ...], rate: float, key: int, layer: int, step: int) -> Tensor:
        """Return 0 for a share `rate` of elements, 1 / (1 - rate) for the others; of the `shape` of a batch."""
        words = _splitmixed(key + (step * _LAYERS + layer + 1) * _GOLDEN)
        mixed = self._numbered(shape) ^ np.uint32(words & _LOW)
        mixed ^= mixed >> 16
        mixed *= np.uint32(_LOW_1)
        mixed ^= np.uint32(words >> 32)
        mixed ^= mixed >> 15
        mixed *= np.uint32(_LOW_2 & _LOW)
        mixed ^= mixed >> 16
        survives = mixed >= np.uint32(min(round(rate * 2**32), _LOW))
        factors = _room(shape)
        np.multiply(survives, np.float32(1 / (1 - rate)), out=_flat(factors))
        return factors

    def _numbered(self, shape: tuple[int, ...]) -> UInt32:
        """Return the number of each element in the order of memory."""
        if shape not in self._numbers:
            numbers = _room(shape, torch.int32)
            numbers.copy_(torch.arange(numbers.numel()).view(shape))
            self._numbers[shape] = _flat(numbers).view(np.uint32)
        return self._numbers[shape]


def _room(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    form = torch.channels_last if len(shape) == 4 else torch.contiguous_format
    return torch.empty(shape, dtype=dtype, memory_format=form)


def _flat(x: Tensor) -> NDArray[Any]:
    """Return the elements of a tensor without gaps as they lie in memory."""
    elements: NDArray[Any] = x.as_strided((x.numel(),), (1,)).numpy()
    return elements


def _splitmixed(x: int) -> int:
    """Return `_splitmix` of a Python integer, as 64 bits without a sign."""
    x &= _WORD
    x = (x ^ x >> 30) * _SPLIT_1 & _WORD
    x = (x ^ x >> 27) * _SPLIT_2 & _WORD
    return x ^ x >> 31


def _wrapped(x: int | Tensor) -> int | Tensor:
    """Bring a Python integer into int64 as torch's own arithmetic does."""
    return x if isinstance(x, Tensor) else (x + 2**63) % 2**64 - 2**63


def _splitmix(x: Tensor) -> Tensor:
    x = (x ^ _shifted(x, 30)) * _SPLIT_1
    x = (x ^ _shifted(x, 27)) * _SPLIT_2
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """Shift right and fill with zeros; torch's own shift repeats the sign."""
    width = torch.iinfo(x.dtype).bits
    return (x >> bits) & ((1 << (width - bits)) - 1)
