"""The models of the papers, by the names that a scenario uses; none of them imports torch.

Each class is what a user may write under `model:`; `build` fits it to the data. Sizes and costs are checked
against the published tables in the tests. An activation of the last layer is never part of a model: it
answers with logits.
"""

from __future__ import annotations

import json
from math import prod
from typing import Annotated, Literal

from pydantic import Field, PositiveInt
from typing_extensions import override  # comes with pydantic and torch

from fedactors.models.layers import (
    Dropout,
    Flatten,
    Layer,
    Maker,
    Model,
    Pool,
    Relu,
    Shape,
    Start,
    conv,
    dense,
    stack,
)
from fedactors.models.module_layer import BufferPolicy, InputSpec, ModuleMaker
from fedactors.models.residual import group_norm, residual
from fedactors.options import Options
from fedactors.own_code.user_code import Reference

Rate = Annotated[float, Field(ge=0, lt=1)]
_RELU = Relu()
_POOL = Pool(2)
_FLATTEN = Flatten()


class _Drawn(Options):
    """A model whose first values are random."""

    init: Literal["uniform", "glorot"] = "uniform"
    """First values: uniform, as PyTorch has them by default, or by Glorot and Bengio (2010), as Keras has them."""


class Logistic(Options):
    """Softmax regression: one dense layer (Ruan et al., SYNTHETIC)."""

    name: Literal["logistic"] = "logistic"
    init: Start = "zeros"
    """First values: zero, as the papers have it, or random ones as of the other models."""

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for samples of `input_shape`. Raises DataError if they do not fit."""
        return stack(self.name, input_shape, _FLATTEN, dense(classes), start=self.init)


class LeastSquares(Options):
    """Linear regression on the labels' unit vectors, from zero: a client's objective is a quadratic."""

    name: Literal["least_squares"] = "least_squares"

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for samples of `input_shape`. Raises DataError if they do not fit."""
        return stack(self.name, input_shape, _FLATTEN, dense(classes), start="zeros", loss="squared")


class Mlp(_Drawn):
    """Dense layers with ReLU between them."""

    name: Literal["mlp"] = "mlp"
    hidden: Annotated[tuple[PositiveInt, ...], Field(strict=False)]
    """Widths of the hidden layers."""
    dropout: Rate = 0.0
    """Share of activations dropped behind each hidden layer."""

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for samples of `input_shape`. Raises DataError if they do not fit."""
        return _perceptron(self.name, input_shape, self.hidden, self.dropout, classes, self.init)


class TwoNN(_Drawn):
    """The 2NN of McMahan et al. (2017): two hidden layers of 200 with ReLU; 199,210 parameters on MNIST."""

    name: Literal["2nn", "mcmahan_2nn"] = "2nn"

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for samples of `input_shape`. Raises DataError if they do not fit."""
        return _perceptron(self.name, input_shape, (200, 200), 0.0, classes, self.init)


class LambMlp(_Drawn):
    """Multilayer perceptron of the Fed-LAMB paper on MNIST: 784-200 ReLU dropout-10."""

    name: Literal["lamb_mlp"] = "lamb_mlp"
    dropout: Rate = 0.5
    """The paper does not print it."""

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for samples of `input_shape`. Raises DataError if they do not fit."""
        return _perceptron(self.name, input_shape, (200,), self.dropout, classes, self.init)


class _Images(Options):
    """A convolutional model; the subclass says which."""

    name: str

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for images of `input_shape`. Raises DataError if they do not fit."""
        return stack(self.name, input_shape, *self._features(), dense(classes), start=self._start)

    @property
    def _start(self) -> Start:
        """What the first values are drawn from."""
        return "uniform"

    def _features(self) -> tuple[Maker | Layer, ...]:
        """Everything before the last dense layer."""
        raise NotImplementedError


class _DrawnImages(_Drawn, _Images):
    """One that may begin as PyTorch's or as Keras's layers do."""

    @property
    @override
    def _start(self) -> Start:
        return self.init


class FslEmnist(_DrawnImages):
    """Federated and server learning, journal version, Table II (EMNIST, 1 x 28 x 28).

    Only "same" in the first and "valid" in the second convolution give the parameter counts of the table.
    """

    name: Literal["fsl_emnist"] = "fsl_emnist"

    def _features(self) -> tuple[Maker | Layer, ...]:
        convolutions = conv(32, 3, "same"), _RELU, conv(64, 3, "valid"), _RELU, _POOL, Dropout(0.25)
        return *convolutions, _FLATTEN, dense(128), _RELU, Dropout(0.5)


class FslCifar(_DrawnImages):
    """Federated and server learning, journal version, Table III (CIFAR-10, 3 x 32 x 32).

    The table prints (13, 13, 64) behind the first pooling; its own parameter counts need (16, 16, 32).
    """

    name: Literal["fsl_cifar"] = "fsl_cifar"

    def _features(self) -> tuple[Maker | Layer, ...]:
        convolutions = conv(32, 3, "same"), _RELU, _POOL, conv(64, 3, "same"), _RELU, _POOL, Dropout(0.25)
        return *convolutions, _FLATTEN, dense(128), _RELU, Dropout(0.5)


class McmahanCnn(_DrawnImages):
    """The CNN of McMahan et al. (2017): 1,663,370 parameters on MNIST."""

    name: Literal["mcmahan_cnn"] = "mcmahan_cnn"

    def _features(self) -> tuple[Maker | Layer, ...]:
        convolutions = conv(32, 5, "same"), _RELU, _POOL, conv(64, 5, "same"), _RELU, _POOL
        return *convolutions, _FLATTEN, dense(512), _RELU


class LambCnn(_DrawnImages):
    """The CNN of the Fed-LAMB paper on MNIST: the classic PyTorch example, with element-wise dropout."""

    name: Literal["lamb_cnn"] = "lamb_cnn"
    dropout: Rate = 0.5
    """The paper does not print it."""

    def _features(self) -> tuple[Maker | Layer, ...]:
        first = conv(10, 5, "valid"), _POOL, _RELU
        second = conv(20, 5, "valid"), Dropout(self.dropout), _POOL, _RELU
        return *first, *second, _FLATTEN, dense(50), _RELU


class LambCifarCnn(_DrawnImages):
    """A CNN for the Fed-LAMB paper on CIFAR-10; the paper prints no layers, these are our choice."""

    name: Literal["lamb_cifar_cnn"] = "lamb_cifar_cnn"

    def _features(self) -> tuple[Maker | Layer, ...]:
        first = conv(32, 3, "valid"), _RELU, _POOL
        second = conv(64, 3, "valid"), _RELU, _POOL
        return *first, *second, conv(64, 3, "valid"), _RELU, _FLATTEN, dense(64), _RELU


class ResNet9(_Images):
    """ResNet-9, for the Fed-LAMB paper on CIFAR-10; the paper prints no layers, these are the usual ones.

    6,575,370 parameters on CIFAR-10, as many as with BatchNorm.
    """

    name: Literal["resnet9"] = "resnet9"
    norm: Literal["group", "batch"] = "group"
    """How activations are normalised: GroupNorm, or BatchNorm, whose statistics are no parameters."""
    groups: PositiveInt = 32
    """Groups of channels that are normalised together."""
    buffers: BufferPolicy = "average"
    """What becomes of BatchNorm's statistics, as for modules of your own."""

    def build(self, input_shape: Shape, classes: int) -> Model:
        """Return the model for images of `input_shape`. Raises DataError if they do not fit."""
        grouped = super().build(input_shape, classes)
        if self.norm == "group":
            return grouped
        from fedactors.models.module_description import described  # imports torch

        features = prod(grouped.layers[-1].tensors()[0][1]) // classes
        arguments = {"channels": input_shape[0], "outputs": classes, "features": features}
        place = "fedactors.models.batch_norm_networks"
        maker = ModuleMaker(Reference("resnet9", place, "ResNet9BatchNorm", None), json.dumps(arguments))
        return described(maker, (InputSpec("", input_shape),), policy=self.buffers)

    def _features(self) -> tuple[Maker | Layer, ...]:
        def block(outputs: int) -> tuple[Maker | Layer, ...]:
            return conv(outputs, 3, "same"), group_norm(self.groups), _RELU

        first = *block(64), *block(128), _POOL, residual(*block(128), *block(128))
        second = *block(256), _POOL, *block(512), _POOL, residual(*block(512), *block(512))
        return *first, *second, Pool(4), _FLATTEN


def _perceptron(
    name: str, input_shape: Shape, hidden: tuple[int, ...], dropout: float, classes: int, start: Start
) -> Model:
    makers: list[Maker | Layer] = [_FLATTEN]
    for width in hidden:
        makers += [dense(width), _RELU, *([Dropout(dropout)] if dropout else [])]
    return stack(name, input_shape, *makers, dense(classes), start=start)
