"""Frozen parts: tensors of the model that no client sends, so that the server keeps the values that it has.

    frozen: ["embedding.*"]    the change of these tensors does not travel, and costs nothing

Partial training as in Yang et al., Partial Variable Training for Efficient On-Device Federated Learning, 2022, with one
mask for all. Local steps may move the frozen parts within a trip; what they make of them is dropped at its end.
Everything else in the list works on the other tensors alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from fedactors.transforms.base import Given, UpdateTransform
from fedactors.transforms.wire import Layout, Wire

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors


class Mask(UpdateTransform):
    """Leaves tensors out of what is sent."""

    name: Literal["mask"] = "mask"
    frozen: Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
    """Patterns (fnmatch) of the names of tensors that are not sent."""

    def travelling(self, layout: Layout) -> Layout:
        """Return the layout without the frozen tensors."""
        return layout.without(self.frozen)

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return the same: `layout` is without the frozen tensors already."""
        return wire

    def apply(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the rows, which are without the frozen tensors already."""
        return rows, {}
