"""The model and the samples with which an algorithm of the user's is tried: one layer, and noise.

They do not depend on the scenario's data, but for an algorithm with an `added_loss`: it looks at outputs and labels, so
these are of the scenario's shapes and kind.
"""

from __future__ import annotations

from math import prod

import numpy as np

from fedactors.data.base import Info, LabelArray
from fedactors.data.partitions.assignment import contiguous
from fedactors.learning.training_task import TrainingData
from fedactors.models.layers import Dense, Loss, Model, Shape
from fedactors.models.loss_description import LossDescription
from fedactors.models.sequence_layers import PlaceDense
from fedactors.simulation.prepared import Prepared

CLIENTS = 2
SAMPLES = 4  # of each client
_MOST = 20_000  # parameters of a model, about
_OF_VALUES = ("value", "multi-label")  # kinds of labels


def trial_model(prepared: Prepared) -> Model | None:
    """Return a model of one layer with about as many parameters as the scenario's, if those are not too many.

    None if the algorithm has an `added_loss`, and no such model answers as the scenario's does.
    """
    outputs = prepared.model.output_shape if prepared.scenario.server.algorithm.has_added_loss else (2,)
    inputs = max(1, min(prepared.model.parameters, _MOST) // outputs[-1] - 1)
    if len(outputs) > 2 or not _fits(_info(prepared), outputs):
        return None
    layer = Dense(inputs, outputs[-1]) if len(outputs) == 1 else PlaceDense(inputs, outputs[-1])
    return Model("trial", (*outputs[:-1], inputs), (layer,), loss=_loss(_info(prepared), outputs))


def trial_samples(prepared: Prepared, model: Model) -> TrainingData:
    """Return noise for two clients."""
    draws = np.random.Generator(np.random.Philox(0))
    count = CLIENTS * SAMPLES
    x = draws.random((count, *model.input_shape), dtype=np.float32)
    y = _labels(draws, (count, *_info(prepared).label_shape), _info(prepared).kind, model.output_shape[-1])
    return TrainingData(x, y, contiguous(np.full(CLIENTS, SAMPLES)))


def _info(prepared: Prepared) -> Info:
    """Return the facts of the data that labels are made by."""
    return prepared.info if prepared.scenario.server.algorithm.has_added_loss else Info("noise", 0, 0, (), 2)


def _labels(draws: np.random.Generator, shape: Shape, kind: str, outputs: int) -> LabelArray:
    """Return labels of a kind."""
    if kind not in _OF_VALUES:
        return draws.integers(0, max(2, outputs), shape)
    values = draws.random(shape, dtype=np.float32)
    return np.rint(values) if kind == "multi-label" else values


def _fits(info: Info, outputs: Shape) -> bool:
    """Whether `_loss` can compare labels and outputs of one sample."""
    if info.kind in _OF_VALUES:
        return prod(info.label_shape) == prod(outputs)
    return info.label_shape == outputs[:-1]


def _loss(info: Info, outputs: Shape) -> Loss | LossDescription:
    """Return a loss for the kind of labels; which one it is does not matter to an algorithm."""
    if info.kind in _OF_VALUES:
        return LossDescription("mse", "value")
    return "binary" if outputs == (1,) else "cross_entropy"
