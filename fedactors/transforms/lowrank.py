"""PowerSGD: Vogels et al., PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization, 2019,
Algorithm 1.

    for each matrix M (n x m) of the update, with Q (m x r) from the last message:
        P <- M Q ;  P <- orthogonalised columns (Gram-Schmidt) ;  Q <- M^T P ;  what arrives is P Q^T

A tensor with more than two dimensions is a matrix of its first dimension by all others; vectors, and matrices that
factors would not make smaller, travel whole. The first Q is drawn at random, the same for all senders. With error
feedback (the default, as in the paper) a sender adds what was left last time.

Deviation: in the paper P and Q are averaged over all workers in the middle of a step. Clients here are heard at
different times, so each compresses by itself, and keeps its own Q.
"""  # noqa: D205 - the citation takes two lines

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fedactors.errors import ScenarioError
from fedactors.streams import Purpose
from fedactors.transforms.base import Compressor, Given
from fedactors.transforms.draws import shared_normal
from fedactors.transforms.row_norms import row_norms
from fedactors.transforms.wire import FLOAT, Layout, TensorPart, Wire

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors

_SMALL = 1e-8  # added to norms, as in the authors' code


class LowRank(Compressor):
    """Sends two thin factors of each matrix."""

    name: Literal["lowrank"] = "lowrank"
    rank: int = Field(default=2, ge=1, le=1024)
    """Columns of the factors."""
    error_feedback: bool = True
    """Whether a sender adds what it could not send last time to what it sends."""

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return the values of all factors, and those of what travels whole."""
        if wire != Wire(layout.size):
            raise ScenarioError(
                "lowrank takes whole matrices of 32-bit values, and something before it sends other ones"
                " (accepted: it before all that compresses)"
            )
        sizes = [self.rank * sum(_matrix(part)) if self._factored(part) else part.size for part in layout.parts]
        return Wire(sum(sizes), FLOAT, factors=True)

    def state(self, layout: Layout) -> dict[str, int]:
        """Return the lengths of e and of all Q together."""
        wide = sum(_matrix(part)[1] * self.rank for part in layout.parts if self._factored(part))
        return super().state(layout) | ({"q": wide} if wide else {})

    def compress(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Approximate each matrix of each row."""
        import torch

        if "q" not in kept:
            return rows, {}
        first = shared_normal(given.draws.seed, Purpose.UPLINK, kept["q"].shape[1]).to(rows)
        before = kept["q"].where(kept["q"].any(1, keepdim=True), first)
        sent: list[Tensor] = []
        renewed: list[Tensor] = []
        place = at = 0
        for part in given.layout.parts:
            mine = rows[:, place : place + part.size]
            place += part.size
            if self._factored(part):
                height, width = _matrix(part)
                old = before[:, at : at + width * self.rank].reshape(-1, width, self.rank)
                at += width * self.rank
                matrix = mine.reshape(-1, height, width)
                p = orthogonal(matrix @ old)
                q = matrix.transpose(1, 2) @ p
                mine = (p @ q.transpose(1, 2)).flatten(1)
                renewed.append(q.flatten(1))
            sent.append(mine)
        return torch.cat(sent, 1), {"q": torch.cat(renewed, 1)}

    def _factored(self, part: TensorPart) -> bool:
        """Whether factors of a tensor are smaller than it is."""
        return len(part.shape) > 1 and self.rank * sum(_matrix(part)) < part.size


def _matrix(part: TensorPart) -> tuple[int, int]:
    """Return the shape of a tensor as a matrix."""
    return part.shape[0], part.size // part.shape[0]


def orthogonal(columns: Tensor) -> Tensor:
    """Return orthonormal columns of `(rows, n, r)` by the modified method of Gram and Schmidt."""
    import torch

    done: list[Tensor] = []
    for number in range(columns.shape[2]):
        column = columns[:, :, number]
        for other in done:
            column = column - (other * column).sum(1, keepdim=True) * other
        done.append(column / (row_norms(column) + _SMALL))
    return torch.stack(done, 2)
