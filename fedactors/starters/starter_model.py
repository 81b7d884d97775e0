"""A model: any torch.nn.Module, which a scenario names by file and class.

    model: {name: torch, factory: "starter.py:StarterModel", arguments: {width: 32}}

Parameters start as the module itself draws them. Dropout and BatchNorm are fine.
"""

from __future__ import annotations

import torch
from torch import nn


class StarterModel(nn.Module):
    """A small convolutional net for images of 8 x 8 in one channel: `digits`.

    Its arguments are what a scenario may write under `arguments`.
    """

    def __init__(self, width: int = 8, classes: int = 10) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 3), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(width * 6 * 6, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits `(batch, classes)` for a batch `(batch, 1, 8, 8)`; the loss is cross entropy."""
        logits: torch.Tensor = self.head(self.body(x))
        return logits
