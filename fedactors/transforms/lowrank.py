"""PowerSGD: Vogels et al., PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization, 2019,
Algorithm 1.

    for each matrix M (n x m) of the update, with Q (m x r) from the last message:
        P <- M Q ;  P <- orthogonalised columns (Gram-Schmidt) ;  Q <- M^T P ;  what arrives is P Q^T

A tensor with more than two dimensions is a matrix of its first dimension by all others; vectors, and matrices that
factors would not make smaller, travel whole. The first Q is drawn at random, the same for all senders. With error
feedback (the default, as in the paper) a sender adds what was left last time.

Deviations: in the paper P and Q are averaged over all workers in the middle of a step. Clients here are heard at
different times, so each compresses by itself, and keeps its own Q. A column of Q that an update of a lower rank left at
0 is drawn again. The authors' code adds 1e-8 to norms, which loses small updates; here nothing is added.
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

_SPANNED = 1e-5  # of a column's norm: if less is left of it, that is rounding


class LowRank(Compressor):
    """Sends two thin factors of each matrix."""

    name: Literal["lowrank"] = "lowrank"
    rank: int = Field(default=2, ge=1, le=1024)
    """Columns of the factors."""
    error_feedback: bool = True
    """Whether a sender adds what it could not send last time to what it sends."""

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return the values of all factors, and those of what travels whole."""
        if wire != Wire(layout.size, counts=wire.counts):
            raise ScenarioError(
                "lowrank takes whole matrices of 32-bit values, and something before it sends other ones"
                " (accepted: it before all that compresses)"
            )
        sizes = [self.rank * sum(_matrix(part)) if self._factored(part) else part.size for part in layout.parts]
        return Wire(sum(sizes), FLOAT, factors=True, counts=wire.counts)

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
        sent: list[Tensor] = []
        renewed: list[Tensor] = []
        place = at = 0
        for part in given.layout.parts:
            mine = rows[:, place : place + part.size]
            place += part.size
            if self._factored(part):
                height, width = _matrix(part)
                old, new = (
                    columns[:, at : at + width * self.rank].reshape(-1, width, self.rank)
                    for columns in (kept["q"], first[None])
                )
                at += width * self.rank
                matrix = mine.reshape(-1, height, width)
                p = orthogonal(matrix @ _columns_to_try(old, new))
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


def _columns_to_try(old: Tensor, new: Tensor) -> Tensor:
    """Return Q of the last message, `(rows, width, rank)`, with `new` columns in place of those that are 0.

    Each is scaled to a largest entry of 1, so that its product with a tiny or a huge update is a 32-bit number.
    """
    columns = old.where(old.any(1, keepdim=True), new)
    return columns / columns.abs().amax(1, keepdim=True)


def orthogonal(columns: Tensor) -> Tensor:
    """Return orthonormal columns of `(rows, n, r)` by the modified method of Gram and Schmidt, applied twice.

    A column that those before it span, up to rounding, becomes 0. In one pass what is left of a column that they nearly
    span is not orthogonal to them (Giraud, Langou, Rozloznik, The loss of orthogonality in the Gram-Schmidt
    orthogonalization process, 2005).
    """
    import torch

    done: list[Tensor] = []
    for number in range(columns.shape[2]):
        column = columns[:, :, number]
        whole = row_norms(column)
        for other in done * 2:
            column = column - (other * column).sum(1, keepdim=True) * other
        left = row_norms(column)
        there = left > _SPANNED * whole
        done.append((column / left.where(there, left.new_ones(1))).where(there, column.new_zeros(1)))
    return torch.stack(done, 2)
