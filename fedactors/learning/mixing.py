"""The step of FedAsync's server: its model is mixed with those of clients, whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fedactors.learning.traffic.downlink import as_sent


def mixed(x: Tensor, older: Sequence[Any], shares: Sequence[float], *, exact: bool = False) -> Tensor:
    """Return x mixed with older models: x + sum_i share_i (x_i - x); x itself where they are x.

    x_i is what clients were sent, from which they went on; or, `exact`, the model itself, which edges have.
    """
    found = x
    for one, share in zip(older, shares, strict=True):
        model = one if exact else as_sent(one)
        found = found + share * (torch.from_numpy(model["x"]) - x)
    return found
