"""Models that are stacks of dense layers, as what trains them by hand sees them."""

from __future__ import annotations

from dataclasses import dataclass

from fedactors.models.layers import Dense, Dropout, Flatten, Model, Relu


@dataclass(frozen=True)
class Block:
    """A dense layer with what follows it: activation and dropout."""

    relu: bool
    rate: float  # of dropout; 0 for none
    number: int  # of the dropout layer in the model, which names its masks


def blocks_of(model: Model) -> tuple[Block, ...]:
    """Return the dense layers of a model with what follows each; nothing if there is anything else.

    Nothing either under autocast, which decides itself what is rounded, and would not see these products.
    """
    if model.loss != "cross_entropy" or model.precision == "bf16":
        return ()
    layers = [(n, layer) for n, layer in enumerate(model.layers) if not (n == 0 and isinstance(layer, Flatten))]
    blocks: list[Block] = []
    for number, layer in layers:
        if isinstance(layer, Dense):
            blocks.append(Block(False, 0.0, -1))
        elif isinstance(layer, Relu) and blocks and blocks[-1] == Block(False, 0.0, -1):
            blocks[-1] = Block(True, 0.0, -1)
        elif isinstance(layer, Dropout) and blocks and blocks[-1].relu and not blocks[-1].rate:
            blocks[-1] = Block(True, layer.rate, number)
        else:
            return ()
    usable = blocks and not blocks[-1].relu and all(block.relu for block in blocks[:-1])
    return tuple(blocks) if usable else ()
