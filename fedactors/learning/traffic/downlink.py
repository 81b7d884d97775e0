"""Transforms of what the server broadcasts: clients start from the model as it arrives, the server keeps its own.

    server, before round t:   send C(x_t), or with error feedback  C(x_t + e), e <- x_t + e - C(x_t + e)

A message is of the whole model: a device that has missed rounds needs nothing else. Or, behind `difference`, it is of
what is new to clients, who have w:

    server, before round t:   send C(x_t - w) ;  w <- w + C(x_t - w)

Before the first round w is the model itself. A device that has missed rounds is sent what it has missed.

Each vector in `sends` of the algorithm goes through the list by itself. In the server's public state "sent.x" is what
clients take for x, w where there are differences; what the server keeps for its feedback is private.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from fedactors.in_place import unchanged
from fedactors.learning.algorithm import Round
from fedactors.learning.traffic.uplink import next_broadcast_values, numbers
from fedactors.learning.training_task import SENT, TrainingTask, Vectors
from fedactors.streams import Purpose
from fedactors.transforms.chain import Chain
from fedactors.transforms.draws import SenderDraws

State = Mapping[str, Tensor]


def first_state(task: TrainingTask, start: State) -> dict[str, Tensor]:
    """Return the server's state before the first round, from the algorithm's."""
    return _with_messages(task, {**start, **numbers(task.broadcast_values)}, {}, 0)


def next_state(task: TrainingTask, moved: State, before: State, sums: State, facts: Round) -> dict[str, Tensor]:
    """Return the server's state after a round, from the algorithm's state, the state `before` and the round's sums."""
    broadcast = next_broadcast_values(task, before, sums, facts)
    return _with_messages(task, {**moved, **broadcast}, before, facts.version + 1)


def _with_messages(task: TrainingTask, state: State, before: State, version: int) -> dict[str, Tensor]:
    """Return the state before round `version`, with what clients are sent in place of it."""
    chain = task.downlink
    found = dict(state)
    if chain is None:
        return found
    positions = torch.from_numpy(chain.layout.positions)
    for number, vector in enumerate(task.algorithm.sends):
        rows = state[vector][None].cpu()
        kept = {name: _row(before.get(name), length) for name, length in chain.keeps([vector]).items()}
        draws = SenderDraws(task.seed, Purpose.DOWNLINK, [number], [version])
        held = _held(chain, before.get(SENT + vector), rows)
        with unchanged("a transform of server.downlink", state=state, kept=before):
            arrived, renewed = chain.sent(vector, rows if held is None else rows - held, kept, draws)
        known = arrived if held is None else held + arrived
        found[SENT + vector] = rows[0].index_copy(0, positions, known[0, positions])
        found |= {name: value[0] for name, value in renewed.items()}
    return found


def _held(chain: Chain, last: Tensor | None, rows: Tensor) -> Tensor | None:
    """Return what clients have of a vector, as one row; None where messages are of the whole vector.

    Before the first round they have what the server has: that is sent whole.
    """
    if not chain.differs:
        return None
    return rows if last is None else last[None].cpu()


def as_sent(vectors: Vectors) -> Vectors:
    """Return what a client takes for the public state: messages in the place of what they stand for."""
    messages = {name.removeprefix(SENT): value for name, value in vectors.items() if name.startswith(SENT)}
    return {name: value for name, value in vectors.items() if not name.startswith(SENT)} | messages


def lengths(chain: Chain | None, sends: Iterable[str], parameters: int) -> dict[str, int]:
    """Return the lengths of what the server's state has besides the algorithm's, by name."""
    if chain is None:
        return {}
    vectors = list(sends)
    return {SENT + vector: parameters for vector in vectors} | chain.keeps(vectors)


def _row(value: Tensor | None, length: int) -> Tensor:
    """Return one row of what was kept; zeros before the first message."""
    return torch.zeros(1, length) if value is None else value[None].cpu()
