"""What a scenario may name as its model: options that build the model for the data."""

from __future__ import annotations

from typing import Protocol

from fedactors.models.layers import Model, Shape


class ModelBuilder(Protocol):
    """Options of one kind of model."""

    @property
    def name(self) -> str:
        """The name that a scenario uses."""
        ...

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for samples of `input_shape`. Raises DataError if they do not fit."""
        ...
