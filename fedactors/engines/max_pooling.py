"""Maxima of windows of 2 x 2 and their gradient, in the memory of what they are taken from.

Each value gives way to whether it is the largest of its window, and that to its share of the error: no list of places,
no image of zeros to scatter errors into, and what is next in memory is next in every operation. Of equal values the
first one in reading order wins, as in torch, so errors are the same to the bit.

Windows are (..., 2, columns of windows, 2, whatever lies side by side): two rows of values, two values in a row.
"""

from __future__ import annotations

import torch
from torch import Tensor


def maxima(windows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the maxima, (..., columns, side by side), and what `spread` needs beside `windows`, which lose theirs."""
    left, right = windows.unbind(-2)
    pairs = torch.maximum(left, right)  # (..., 2, columns, side by side)
    left.ge_(right)
    upper, lower = pairs.unbind(-3)
    most = torch.maximum(upper, lower)
    upper.ge_(lower)
    return most, pairs


def spread(errors: Tensor, windows: Tensor, pairs: Tensor) -> None:
    """Put the errors of maxima where these were found, and zeros elsewhere, into `windows`; `pairs` lose theirs."""
    upper, lower = pairs.unbind(-3)
    torch.mul(errors, upper, out=upper)
    torch.sub(errors, upper, out=lower)
    left, right = windows.unbind(-2)
    torch.mul(pairs, left, out=left)
    torch.sub(pairs, left, out=right)
