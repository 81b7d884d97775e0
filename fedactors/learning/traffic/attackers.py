"""What attackers send in place of their updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedactors.attacks.base import Attack
from fedactors.streams import Purpose
from fedactors.transforms.draws import SenderDraws

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.training_task import Chunk, TrainingTask


def attacked(task: TrainingTask, chunk: Chunk, uploads: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return what the clients of a chunk upload, `(trips, parameters)` each, if some of them attack.

    Attackers alter each vector of the algorithm's `changes`, as the uplink's transforms do after them: they clip and
    compress what they send as all do. What stays at clients, and buffers, is as it was.
    """
    found = uploads
    for group in task.attackers:
        places = [place for place, client in enumerate(chunk.clients) if group.first <= client < group.last]
        if places:
            found = _altered(task, chunk, found, places, group.attack)
    return found


def _altered(
    task: TrainingTask, chunk: Chunk, uploads: dict[str, Tensor], places: Sequence[int], attack: Attack
) -> dict[str, Tensor]:
    """Return the uploads with other rows at the places of attackers."""
    found = dict(uploads)
    draws = SenderDraws(
        task.seed, Purpose.ATTACK, [chunk.clients[place] for place in places], [chunk.trips[place] for place in places]
    )
    staying = _staying(task)
    for vector in task.algorithm.changes:
        rows = uploads[vector]
        theirs = rows[list(places)]
        sent = attack.updates(theirs, draws).clone()
        sent[:, staying] = theirs[:, staying]
        altered = rows.clone()
        altered[list(places)] = sent
        found |= {name: altered for name, one in uploads.items() if one is rows}
    return found


def _staying(task: TrainingTask) -> NDArray[np.int64]:
    """Return the positions that no attack alters: what stays at clients, and buffers."""
    buffers = np.arange(task.model.parameters - task.model.buffer_values, task.model.parameters)
    return buffers if task.personal is None else np.union1d(buffers, task.personal)
