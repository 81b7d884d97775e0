"""Digits with several labels each: whether it is even, prime, above four, a square."""

import numpy as np
from sklearn.datasets import load_digits
from torch import Tensor, nn

Part = tuple[np.ndarray, np.ndarray]


def load() -> tuple[Part, Part]:
    images, digits = load_digits(return_X_y=True)
    x = (images / 16).astype(np.float32)
    even, above = digits % 2 == 0, digits > 4
    prime, square = np.isin(digits, (2, 3, 5, 7)), np.isin(digits, (0, 1, 4, 9))
    y = np.stack([even, prime, above, square], 1).astype(np.int64)
    test = np.arange(len(x)) % 5 == 4
    return (x[~test], y[~test]), (x[test], y[test])


class Facts(nn.Module):
    def __init__(self, units: int = 32) -> None:
        super().__init__()
        self.shared = nn.Linear(64, units)
        self.out = nn.ModuleList(nn.Linear(units, 1) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.shared(x).relu()
        return nn.functional.pad(self.out[0](x), (0, 3)) + sum(
            nn.functional.pad(out(x), (place, 3 - place)) for place, out in enumerate(self.out) if place
        )
