"""How good models are at single clients: the global one, or what each client would use itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fedactors.data.holdings import Holdings
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.own_models import OWN
from fedactors.learning.training_task import ClientMeasures, Vectors
from fedactors.models.personal import PERSONAL

Float32 = NDArray[np.float32]


def client_model(x: Float32, kept: Vectors | None, positions: NDArray[np.int64] | None) -> Float32:
    """Return the model that a client would use, `(parameters,)`: its own, or `x` with its personal part.

    `kept` is what it keeps, None if it never took part: then it is `x`.
    """
    if kept is None:
        return x
    mine: Float32 = kept.get(OWN, x)
    if PERSONAL not in kept or OWN in kept:
        return mine
    mine = mine.copy()
    mine[positions] = kept[PERSONAL]
    return mine


def evaluate_clients(
    evaluator: ModelEvaluator, clients: Sequence[int], models: Iterable[Float32], held_out: Holdings | None
) -> tuple[ClientMeasures, ...]:
    """Return the measures of each client's model on its held-out samples, or on all if nothing is held out by clients.

    A client without samples has no measures and is left out. Models are asked for one by one: not all fit in memory.
    """
    found = []
    for client, model in zip(clients, models, strict=True):
        rows = None if held_out is None else held_out.of(client)
        measures = evaluator.evaluate(model, rows)
        if measures:
            samples = evaluator.samples if rows is None else len(rows)
            further = {name: value for name, value in measures.items() if name not in ("accuracy", "loss")}
            found.append(ClientMeasures(client, samples, measures.get("accuracy"), measures["loss"], further))
    return tuple(found)
