"""What a recommender costs a client: Augenstein et al., 2022, tables 3 and 12, appendix C.3.

With V movies, embeddings of length d, n movies at a client, batch B and K steps, in floats and operations:

    traffic     all rows 2 V d (down and up) ; Parallel Training 2 n d ; 1-W and 2-W 3 n d, with the gradient
    a step      B d + 3 B d^2 + 3 B^2 d + 2 B ; and V^2 d / 2 + V d more if the client computes the regulariser
    the server  V^2 d / 2 for each gradient of the regulariser

The paper approximates the model by its table; the layers behind it travel as well, and are charged.
"""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """What one way to train the recommender costs a client."""

    traffic: int  # bytes of a round, of the table alone
    step: int  # operations of a local step


def costs(movies: int, width: int, seen: int, batch: int) -> dict[str, Cost]:
    """Return the costs of tables 3 and 12, by method."""
    own = batch * width + 3 * batch * width**2 + 3 * batch**2 * width + 2 * batch
    everything = own + movies**2 * width // 2 + movies * width
    rows = {"baseline": 2 * movies, "PT": 2 * seen, "1-W": 3 * seen, "2-W": 3 * seen}
    return {name: Cost(4 * count * width, everything if name == "baseline" else own) for name, count in rows.items()}
