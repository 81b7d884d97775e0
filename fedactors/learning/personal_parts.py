"""Personal parts: parameters that stay at the clients (FedPer, FedBN), around any algorithm.

    client i, at its first trip:  p_i <- the initial values
    each trip:                    y <- (x without P, p_i) ; local steps move all of y ; p_i <- y at P
                                  what it sends is that of an algorithm that saw no change at P
    server:                       x at P is what it was

With phases (FedRep), the first local steps move y at P alone, the others y outside P alone.

P are positions of the flat vector. The algorithm is given the model as it was sent, and a change of zero at P; whatever
it makes of that, the server's model keeps its values at P to the bit. They are the initial ones, which is what a client
starts from that has not taken part before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.engines.client_batch import Phases
from fedactors.models.personal import PERSONAL


class PersonalParts:
    """The personal parts of the clients of one task, on one device; without positions, nothing is changed."""

    def __init__(self, positions: NDArray[np.int64] | None, device: torch.device) -> None:
        found = np.zeros(0, np.int64) if positions is None else positions
        self._positions = torch.from_numpy(found).to(device)
        self.some = bool(len(found))

    def starts(self, sent: Tensor, kept: Sequence[Mapping[str, NDArray[np.float32]] | None], clients: int) -> Tensor:
        """Return what each client starts from, `(clients, parameters)`: `sent`, with its own values at P."""
        if not self.some:
            return sent
        rows = sent.expand(clients, -1).clone()
        for row, mine in zip(rows, kept, strict=True):
            if mine is not None:
                row[self._positions] = torch.from_numpy(mine[PERSONAL]).to(row.device)
        return rows

    def phases(self, each: Sequence[int], clients: Sequence[int], parameters: int) -> Phases | None:
        """Return the phases of the trips of `clients`; `each` has the first steps of every client, or nothing."""
        if not each:
            return None
        steps = [each[client] for client in clients]
        device = self._positions.device
        mine = torch.zeros(parameters, dtype=torch.bool, device=device).index_fill(0, self._positions, True)
        return Phases(mine, torch.tensor(steps, device=device)[:, None])

    def shared(self, changes: Tensor) -> Tensor:
        """Return changes `(clients, parameters)` with zero at P."""
        return changes.index_fill(1, self._positions, 0.0) if self.some else changes

    def of(self, starts: Tensor, deltas: Tensor) -> dict[str, Tensor]:
        """Return what each client keeps of its model, which is where it started and its update."""
        if not self.some:
            return {}
        return {PERSONAL: starts[:, self._positions] + deltas[:, self._positions]}


def unmoved(positions: NDArray[np.int64] | None, before: Tensor, after: Tensor) -> Tensor:
    """Return the model `after` an aggregation with the values at `positions` that it had `before`."""
    if positions is None or not len(positions):
        return after
    places = torch.from_numpy(positions).to(after.device)
    return after.index_copy(0, places, before.to(after.device)[places])
