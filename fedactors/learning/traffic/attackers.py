"""What attackers send in place of their updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedactors.attacks.base import Attackers, UpdateAttack
from fedactors.learning.chunks import joined
from fedactors.streams import Purpose
from fedactors.transforms.draws import SenderDraws

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import ClientResult
    from fedactors.learning.training_task import Chunk, TrainingTask


def attacked(task: TrainingTask, chunks: Sequence[Chunk], result: ClientResult) -> ClientResult:
    """Return the `result` of the trips of chunks from which clients work out what they send, where some attack.

    Attackers alter the change of their model, `delta`, `(trips, parameters)`; what an algorithm sends follows from it,
    also the sum of the gradients of their steps, G: SGD of rate eta moves by -eta G and by what is added to gradients,
    so a change that is longer by d is that of a sum G - d / eta. The gradient of a first step is as it was. Transforms
    of the uplink come afterwards: attackers clip and compress what they send as all do. What stays at clients, and
    buffers, is as it was.
    """
    if not task.attackers:
        return result
    chunk = joined(chunks)
    delta = result.delta
    for group in task.attackers:
        places = [place for place, client in enumerate(chunk.clients) if group.first <= client < group.last]
        if places:
            delta = _altered(task, chunk, delta, places, group)
    return result._replace(delta=delta, gradients=_gradients_of(delta, result))


def _gradients_of(delta: Tensor, result: ClientResult) -> Tensor | None:
    """Return the sums of gradients along trips that moved by `delta`, where the engine has summed any."""
    if result.gradients is None or not result.lr:
        return result.gradients
    altered = (delta != result.delta).any(1)
    found = result.gradients.clone()
    found[altered] -= (delta[altered] - result.delta[altered]) / result.lr
    return found


def _altered(task: TrainingTask, chunk: Chunk, rows: Tensor, places: Sequence[int], group: Attackers) -> Tensor:
    """Return the rows with others at the places of attackers."""
    clients, trips = ([column[place] for place in places] for column in (chunk.clients, chunk.base_versions))
    attack = group.attack
    assert isinstance(attack, UpdateAttack)
    theirs = rows[places]
    sent = attack.updates(theirs, SenderDraws(task.seed, Purpose.ATTACK, clients, trips)).clone()
    staying = _staying(task)
    sent[:, staying] = theirs[:, staying]
    found = rows.clone()
    found[places] = sent
    return found


def _staying(task: TrainingTask) -> NDArray[np.int64]:
    """Return the positions that no attack alters: what stays at clients, and buffers."""
    buffers = np.arange(task.model.parameters - task.model.buffer_values, task.model.parameters)
    return buffers if task.personal is None else np.union1d(buffers, task.personal)
