"""How different the clients are from each other and from the server, at one model.

Source: FSL journal, Assumptions 3 and 4 and its figure on dissimilarities. With f_i the mean loss over the data of
client i, F = (1/N) sum_i f_i and f_0 the mean loss over the server's data,

    xi^2 = |grad f_0 - grad F|^2        G^2 = (1/N) sum_i |grad f_i - grad F|^2 = (1/N) sum_i |grad f_i|^2 - |grad F|^2

The second form of G^2 needs two sums only, which any number of hosts can share.

Source of the mixed measures: Augenstein et al., Mixed Federated Learning, equation 7. With one batch per client of the
cohort and one central batch, a = (1/S) sum_i g_i and b = g_c, weights w_f and w_c included, and c = a + b,

    Gt^2 = |a|^2 / w_f + |b|^2 / w_c - |c|^2        Bt^2 = (|a|^2 / w_f + |b|^2 / w_c) / |c|^2

so that Gt^2 = w_f w_c |a / w_f - b / w_c|^2 >= 0 and Bt^2 = 1 + Gt^2 / |c|^2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class GradientSum(NamedTuple):
    """Sums over some clients, in double precision: G^2 is a small difference of large numbers."""

    total: NDArray[np.float64]  # (parameters,): of their gradients
    squares: float  # of their gradients' squared lengths
    clients: int


def gradient_sum(gradients: Iterable[NDArray[np.float32]]) -> GradientSum:
    """Return the sums over `gradients`, each `(parameters,)`; there is at least one."""
    total: NDArray[np.float64] = np.zeros(1)
    squares = 0.0
    clients = 0
    for gradient in gradients:
        exact = gradient.astype(np.float64)
        total = total + exact
        squares += float(exact @ exact)
        clients += 1
    return GradientSum(total, squares, clients)


def dissimilarity(gradient_sums: Sequence[GradientSum], own: NDArray[np.float32]) -> dict[str, float]:
    """Return {"xi2", "g2"} from the sums over all clients and the server's `own` gradient, `(parameters,)`."""
    clients = sum(part.clients for part in gradient_sums)
    mean = np.sum([part.total for part in gradient_sums], axis=0) / clients
    apart = own.astype(np.float64) - mean
    spread = sum(part.squares for part in gradient_sums) / clients - float(mean @ mean)
    return {"xi2": float(apart @ apart), "g2": max(spread, 0.0)}


def mixed_dissimilarity(
    gradient_sums: Sequence[GradientSum], central: NDArray[np.float32], weights: tuple[float, float]
) -> dict[str, float]:
    """Return {"gt2", "bt2"} from the clients' sums and the central gradient, both before they are weighted.

    `weights` are w_f and w_c, neither of them 0. Bt^2 of a vanishing total gradient is infinite, or 1 if Gt^2 is 0.
    """
    w_f, w_c = weights
    clients = sum(part.clients for part in gradient_sums)
    apart = np.sum([part.total for part in gradient_sums], axis=0) / clients - central
    total = w_f * (apart + central) + w_c * central
    gt2, length = w_f * w_c * float(apart @ apart), float(total @ total)
    return {"gt2": gt2, "bt2": 1 + gt2 / length if length else (float("inf") if gt2 else 1.0)}
