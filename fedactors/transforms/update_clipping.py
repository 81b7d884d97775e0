"""Clipping of updates: McMahan et al., Learning Differentially Private Recurrent Language Models, 2018, Algorithm 1.

    update <- update min(1, S / |update|)

The whole update of a client is one vector (the paper's flat clipping). `order: 1` measures it by the sum of absolute
values, which is what noise of Laplace's law needs. Gradients are clipped elsewhere: `server.local.clip`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fedactors.transforms.base import Given, UpdateTransform
from fedactors.transforms.row_norms import Norm, row_norms

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class ClipUpdates(UpdateTransform):
    """Shortens updates that are longer than a norm."""

    name: Literal["clip"] = "clip"
    norm: Norm
    """The longest that an update may be."""
    order: Literal[1, 2] = 2
    """Of the norm: Euclidean, or the sum of absolute values."""

    @property
    def bound(self) -> tuple[float, int]:
        """The norm that no update exceeds."""
        return self.norm, self.order

    def apply(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Shorten each row that is too long."""
        return clipped(rows, self.norm, self.order), {}


def clipped(rows: Tensor, norm: float, order: int = 2) -> Tensor:
    """Return rows of which none is longer than `norm`."""
    shrink: Tensor = (norm / row_norms(rows, order)).clamp(max=1.0)
    return rows * shrink
