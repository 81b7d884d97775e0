"""Models of papers with BatchNorm, as torch modules: its statistics are buffers, which `module_layer` knows."""

from __future__ import annotations

from torch import Tensor, nn


class ResNet9BatchNorm(nn.Module):
    """ResNet-9 as `paper_models.ResNet9` has it, with BatchNorm in place of GroupNorm."""

    def __init__(self, channels: int, outputs: int, features: int) -> None:
        super().__init__()
        self.first = nn.Sequential(_block(channels, 64), _block(64, 128), nn.MaxPool2d(2))
        self.second = nn.Sequential(_block(128, 128), _block(128, 128))
        self.third = nn.Sequential(_block(128, 256), nn.MaxPool2d(2), _block(256, 512), nn.MaxPool2d(2))
        self.fourth = nn.Sequential(_block(512, 512), _block(512, 512))
        self.pool = nn.MaxPool2d(4)
        self.out = nn.Linear(features, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits `(batch, outputs)` of images `x`."""
        x = self.first(x)
        x = self.third(x + self.second(x))
        x = x + self.fourth(x)
        found: Tensor = self.out(self.pool(x).flatten(1))
        return found


def _block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding="same"), nn.BatchNorm2d(outputs), nn.ReLU())
