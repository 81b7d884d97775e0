"""Which parameters a client of a model with a table needs, and what they cost: Augenstein et al., 2022, C.3.

A client's loss depends on the rows of its own movies alone, so no other row needs to travel; the layers behind the
table do. Where clients follow a gradient that came with the model (1-W, 2-W), the rows that a client lacks would move
by -eta K_i gc: the server, which has all three, moves them itself, and the result is that of whole models.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fedactors.models.layers import Model
from fedactors.models.sequence_layers import Bag

Mask = NDArray[np.bool_]


def table_of(model: Model) -> Bag | None:
    """Return the table at the bottom of `model` of which a client needs the rows that its data name, if it has one."""
    first = model.layers[0] if model.layers else None
    return first if isinstance(first, Bag) and model.loss == "hinge" else None


def floats(model: Model, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the parameters that clients with so many `rows` need, `(clients,)`. The model has a table."""
    table = table_of(model)
    assert table is not None
    return rows * table.width + (model.parameters - table.rows * table.width)


def regulariser_flops(model: Model) -> int:
    """Return the operations of a regulariser over all pairs of rows and of its gradient; 0 without a table.

    V^2 d / 2 + V d multiply-adds, as the paper counts them for a device (our own engine takes fewer, V d^2).
    """
    table = table_of(model)
    return 0 if table is None else table.rows * table.width * (table.rows + 2)


def needed(model: Model, identifiers: Iterable[NDArray[np.int64]]) -> Mask:
    """Return which parameters a client needs whose data name these `identifiers`, `(parameters,)`; -1 names nothing."""
    table = table_of(model)
    assert table is not None
    rows = np.zeros(table.rows, dtype=bool)
    for part in identifiers:
        rows[part[part >= 0]] = True
    rest = np.ones(model.parameters - table.rows * table.width, dtype=bool)
    return np.concatenate([np.repeat(rows, table.width), rest])


def encode(vectors: Iterable[NDArray[np.float32]], mask: Mask) -> bytes:
    """Return the message that carries these vectors to or from a client: their needed parameters, little-endian."""
    parts = [vector[mask].astype("<f4").tobytes() for vector in vectors]
    return len(parts).to_bytes(4, "little") + b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def decode(message: bytes, model: Model, mask: Mask) -> list[NDArray[np.float32]]:
    """Return the vectors of a message, `(parameters,)` each, 0 where nothing was sent."""
    vectors, at = [], 4
    for _ in range(int.from_bytes(message[:4], "little")):
        size = int.from_bytes(message[at : at + 4], "little")
        vector = np.zeros(model.parameters, dtype=np.float32)
        vector[mask] = np.frombuffer(message, dtype="<f4", count=size // 4, offset=at + 4)
        vectors.append(vector)
        at += 4 + size
    return vectors
