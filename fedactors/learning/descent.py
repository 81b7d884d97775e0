"""One local step, the same for one client and for rows of many: y <- y - lr * (g + corr + prox * (y - x))."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def descend(
    tensors: Sequence[Tensor],
    grads: Sequence[Tensor],
    starts: Sequence[Tensor],
    corrections: Sequence[Tensor] | None,
    prox: float,
    lr: float,
) -> None:
    """Move `tensors` in place; `grads` are used up. Shapes agree, or `corrections` broadcast over a leading axis.

    Source: LocalSGD with a constant correction and a proximal weight, the common client of FedAvg (0, 0), FedProx
    (0, mu), SCAFFOLD (c - c_i, 0), FedDyn and gradient transfer.
    """
    moved = list(grads)
    if prox:
        away = torch._foreach_sub(list(tensors), list(starts))
        torch._foreach_add_(moved, away, alpha=prox)
    if corrections is not None:
        torch._foreach_add_(moved, list(corrections))
    torch._foreach_add_(list(tensors), moved, alpha=-lr)
