"""What becomes of a model's buffers, such as BatchNorm's statistics, when the server aggregates.

No gradient moves them, so no rule of an algorithm applies to them: whatever it does with parameters, buffers become the
average of the clients' by the weights of the round, or stay what they are on the server. Averaged are values, not
changes: a change against an older model could make a variance negative.
"""

from __future__ import annotations

from torch import Tensor

from fedactors.learning.algorithm import Round
from fedactors.models.layers import Model
from fedactors.models.module_layer import BufferPolicy, ModuleLayer

BUFFERS = "buffers"  # the name under which buffers are uploaded


def policy(model: Model) -> BufferPolicy:
    """Return what the model's module says of its buffers."""
    return next((layer.policy for layer in model.layers if isinstance(layer, ModuleLayer)), "average")


def with_buffers(model: Model, before: Tensor, after: Tensor, total: Tensor | None, facts: Round) -> Tensor:
    """Return the model `after` an aggregation, `(parameters,)`, with the buffers that it is to have.

    Args:
        model: its description.
        before: the flat vector whose buffers stay where none are received: the server's before the aggregation, or,
            of edges and cloud, the mean of the models that it goes on from.
        after: what the algorithm made of it.
        total: weighted sum of the clients' buffers, `(buffers,)`; None if nothing was received.
        facts: of the round. Where models are mixed (FedAsync), weights are the clients' shares of the mixture. Where
            edges are, they are shares of the edge's own clients, and a round of the cloud has none.

    """
    count = model.buffer_values
    if not count:
        return after
    kept = before[-count:]
    if total is not None and facts.weight and policy(model) == "average":
        kept = total + (1 - facts.weight) * kept if facts.mixed else total / facts.weight
    merged = after.clone()
    merged[-count:] = kept
    return merged
