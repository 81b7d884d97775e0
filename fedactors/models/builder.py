"""What a scenario may name as its model: options that build the model for the data."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from fedactors.models.layers import Model, Shape
from fedactors.models.module_layer import InputSpec


class ModelBuilder(Protocol):
    """Options of one kind of model."""

    @property
    def name(self) -> str:
        """The name that a scenario uses."""
        ...

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for samples of `input_shape`. Raises DataError if they do not fit."""
        ...


@runtime_checkable
class Describing(Protocol):
    """Options of a model that can take samples of several parts, or of identifiers."""

    def describe(self, inputs: tuple[InputSpec, ...], classes: int) -> Model:
        """Return the model for samples with these parts. Raises DataError if they do not fit."""
        ...
