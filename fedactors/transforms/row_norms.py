"""Norms of rows, also of those whose squares do not fit into 32 bits: updates of runs that diverge, and tiny ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

if TYPE_CHECKING:
    from torch import Tensor

SHORTEST, LONGEST = 1e-30, 1e30  # norms that options may have: far from where 32-bit numbers end
_EXACT = 1e-15  # a shorter row has squares that 32 bits round coarsely, or to 0


def _of_32_bits(norm: float) -> float:
    """Return a norm. Raises ValueError if 32-bit numbers cannot hold it well."""
    if SHORTEST <= norm <= LONGEST:
        return norm
    raise ValueError(f"found {norm:g}, must lie between {SHORTEST:g} and {LONGEST:g}")


Norm = Annotated[float, Field(gt=0.0), AfterValidator(_of_32_bits)]


def row_norms(rows: Tensor, order: int = 2) -> Tensor:
    """Return the norm of each row of `(rows, values)`, `(rows, 1)`: Euclidean, or with order 1 the sum of sizes."""
    norms: Tensor = rows.norm(p=order, dim=1, keepdim=True)
    good = norms.isfinite() & (norms >= _EXACT)
    if good.all():
        return norms
    return norms.where(good, rows.double().norm(p=order, dim=1, keepdim=True).to(rows.dtype))
