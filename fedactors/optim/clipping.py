"""Clips gradients as torch.nn.utils.clip_grad_norm_ and clip_grad_value_ do, for one client or for rows of many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedactors.clip import Clip

if TYPE_CHECKING:
    from torch import Tensor

_EPS = 1e-6  # as in torch: what is added to the norm that divides


def clipped(grad: Tensor, clip: Clip | None) -> Tensor:
    """Return gradients, `(..., parameters)`, each clipped by itself; the same object if there is no bound."""
    if clip is None:
        return grad
    if clip.norm is None:
        return grad.clamp(-clip.value, clip.value) if clip.value is not None else grad
    shrink: Tensor = clip.norm / (grad.norm(dim=-1, keepdim=True) + _EPS)
    return grad * shrink.clamp(max=1.0)
