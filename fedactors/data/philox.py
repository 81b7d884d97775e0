"""Philox4x32-10 for many counters in one call: random numbers of many streams without a generator for each.

Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, 2011, with their multipliers and constants.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UInt64 = NDArray[np.uint64]

_ROUNDS = 10
_LOW = np.uint64(2**32 - 1)
_HALF = np.uint64(32)
_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_WEYL = np.array([[0x9E3779B9], [0xBB67AE85]], np.uint64)


def philox(counters: UInt64, seed: int) -> UInt64:
    """Return four random words of 32 bits, `(4, blocks)`, for each counter of four words, `(4, blocks)`.

    The two words of the key are those of the lowest 64 bits of `seed`.
    """
    key = np.array([[seed & 0xFFFFFFFF], [seed >> 32 & 0xFFFFFFFF]], np.uint64)
    even, odd = counters[0::2], counters[1::2]
    for _ in range(_ROUNDS):
        crossed = (even * _MULTIPLIERS)[::-1]
        even = crossed >> _HALF
        even ^= odd
        even ^= key
        crossed &= _LOW
        odd = crossed
        key = (key + _WEYL) & _LOW
    return np.stack([even[0], odd[0], even[1], odd[1]])
