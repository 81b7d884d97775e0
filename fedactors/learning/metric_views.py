"""What a measure needs of a model's outputs: all of them, or one number for each answer, worked out batch by batch.

    best         the class with the largest output: of accuracy, F1 and whatever else counts right and wrong answers
    top5         whether the label is among the so many largest outputs
    chance       softmax's probability of the label, in float64: of perplexity
    outputs      all of them: of curves, of calibration, of the user's measures, and of labels that are no classes

So the outputs of a test set need not be there at once, which are as many numbers as there are samples, places and
classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedactors.metric_names import BEST, CHANCE, OUTPUTS

_AT_ONCE = 2**22  # numbers that are worked on at a time


def view(name: str, outputs: Tensor, y: Tensor) -> Tensor:
    """Return a view of `outputs`, `(n, …, classes)`, with labels `y`: `(n, …, 1)`, or `outputs` themselves."""
    if name == OUTPUTS:
        return outputs
    if outputs.dim() < 2 or outputs.shape[:-1].numel() != y.numel():
        return torch.full((len(outputs), 1), torch.nan, dtype=torch.float64)  # no measure is defined
    rows, labels = outputs.flatten(0, -2), y.flatten()
    some = max(1, _AT_ONCE // outputs.shape[-1])
    parts = [
        _RULES.get(name, _among_best)(name, *part)
        for part in zip(torch.split(rows, some), torch.split(labels.long(), some), strict=True)
    ]
    return torch.cat(parts).reshape(*outputs.shape[:-1], 1)


def _best(name: str, rows: Tensor, labels: Tensor) -> Tensor:
    return rows.argmax(-1)


def _chance(name: str, rows: Tensor, labels: Tensor) -> Tensor:
    """Return the probabilities of labels; those of labels that do not count are of no class, and any."""
    there = labels.clamp(0, rows.shape[-1] - 1)
    return rows.double().softmax(-1).gather(-1, there[:, None])[:, 0]


def _among_best(name: str, rows: Tensor, labels: Tensor) -> Tensor:
    count = int(name.removeprefix("top"))
    best = rows.topk(min(count, rows.shape[-1]), dim=-1).indices
    return (best == labels[:, None]).any(1)


_RULES: dict[str, Callable[[str, Tensor, Tensor], Tensor]] = {BEST: _best, CHANCE: _chance}


class OutputViews:
    """Views of outputs that come batch by batch; the outputs themselves are not kept, unless a measure needs them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._parts = {name: list[Tensor]() for name in names}
        self.classes = 0

    def add(self, outputs: Tensor, y: Tensor) -> None:
        """Keep the views of a batch's outputs, `(batch, …, classes)`, with its labels `y`."""
        self.classes = outputs.shape[-1]
        for name, parts in self._parts.items():
            parts.append(view(name, outputs, y))

    def joined(self) -> dict[str, Tensor]:
        """Return the views of all batches by name; they are kept no longer."""
        return {name: torch.cat(self._parts.pop(name)) for name in tuple(self._parts)}
