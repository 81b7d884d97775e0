"""Models that are stacks of dense layers, in the form that engines train by hand."""

from __future__ import annotations

from dataclasses import dataclass

from fedactors.models.layers import Dense, Dropout, Flatten, Layer, Model, Relu


@dataclass(frozen=True)
class Block:
    """A dense layer with what follows it: activation and dropout."""

    relu: bool
    rate: float  # of dropout; 0 for none
    number: int  # of the dropout layer in the model, which names its masks


def blocks_of(model: Model) -> tuple[Block, ...]:
    """Return the dense layers of a model with what follows each; nothing if there is anything else.

    Nothing under autocast either: it rounds the factors of torch's own layers, and not of these products.
    """
    if model.loss != "cross_entropy" or model.precision == "bf16":
        return ()
    blocks = list[Block]()
    for number, layer in enumerate(model.layers):
        if number == 0 and isinstance(layer, Flatten):
            continue
        if isinstance(layer, Dense):
            blocks.append(_PLAIN)
            continue
        extended = _extended(blocks[-1], layer, number) if blocks else None
        if extended is None:
            return ()
        blocks[-1] = extended
    return tuple(blocks) if _usable(blocks) else ()


def _usable(blocks: list[Block]) -> bool:
    """Whether every block but the last one has a ReLU."""
    return bool(blocks) and not blocks[-1].relu and all(block.relu for block in blocks[:-1])


_PLAIN = Block(False, 0.0, -1)


def _extended(block: Block, layer: Layer, number: int) -> Block | None:
    """Return `block` with the layer that follows it, number `number` of the model; None if it cannot have it."""
    if isinstance(layer, Relu) and block == _PLAIN:
        return Block(True, 0.0, -1)
    if isinstance(layer, Dropout) and block.relu and not block.rate:
        return Block(True, layer.rate, number)
    return None
