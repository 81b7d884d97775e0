"""A whole model of each client's own, trained beside the one that it sends (Ditto).

    v_i <- K times  v - eta_l ( g_i(v) + lambda (v - x) )

On the batches of the trip, with its dropout masks. x is what the client's trip starts from: the model that it was sent,
with the client's own values of parts that are not sent. Engines pull towards the start of a row, here v_i: the rest of
the pull, lambda (v_i - x), is constant during a trip and is a correction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from fedactors.engines.client_batch import ClientBatch

OWN = "own"  # the name under which a client keeps its own model


def own_rows(rows: ClientBatch, kept: Sequence[Mapping[str, NDArray[np.float32]] | None], pull: float) -> ClientBatch:
    """Return the rows that train each client's own model, `pull` being lambda; at its first trip it starts from x."""
    starts = rows.starts.clone()
    for row, mine in zip(starts, kept, strict=True):
        if mine is not None:
            row.copy_(torch.from_numpy(mine[OWN]))
    corrections = (starts - rows.starts) * pull
    own = range(len(rows.clients))
    return replace(rows, starts=starts, corrections=corrections, prox=pull, model_indices=own, prepared=[])
