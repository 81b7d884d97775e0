"""A model made of the layers that fedactors has."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from fedactors.models.layers import Flatten, Model, Relu, Shape, dense, stack
from fedactors.options import Options


class TwoLayers(Options):
    """One hidden layer with ReLU."""

    name: Literal["two-layers"] = "two-layers"
    width: PositiveInt = 16
    """Width of the hidden layer."""

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for samples of `input_shape`. Raises DataError if they do not fit."""
        return stack(self.name, input_shape, Flatten(), dense(self.width), Relu(), dense(classes))
