"""Is this the digit that was asked for? Samples have an image and a number."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn


def load() -> dict[str, list[dict[str, object]]]:
    images, digits = load_digits(return_X_y=True)
    draws = np.random.default_rng(0)
    found: dict[str, list[dict[str, object]]] = {"train": [], "test": []}
    for place, (image, digit) in enumerate(zip(images, digits, strict=True)):
        asked = int(digit if draws.random() < 0.5 else draws.integers(10))
        sample = {"image": (image / 16).astype(np.float32), "asked": asked, "label": int(asked == digit)}
        found["test" if place % 5 == 4 else "train"].append(sample)
    return found


class Net(nn.Module):
    def __init__(self, units: int = 32) -> None:
        super().__init__()
        self.see = nn.Sequential(nn.Linear(64, units), nn.ReLU(), nn.Linear(units, units))
        self.hear = nn.Embedding(10, units)
        self.out = nn.Linear(2 * units, 2)

    def forward(self, image: Tensor, asked: Tensor) -> Tensor:
        seen, heard = self.see(image), self.hear(asked)
        return self.out(torch.cat([seen * heard, (seen - heard).abs()], 1))
