"""How good a model is on a test set."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fedactors.learning.layers import Model
from fedactors.learning.network import forward, views

_BATCH = 1000  # samples at a time; part of the result's bits, so never tuned to the machine


class Examiner:
    """Accuracy and mean loss of models on one test set, on one device."""

    def __init__(self, model: Model, x: NDArray[np.float32], y: NDArray[np.int64], device: str = "cpu") -> None:
        self._model, self._device = model, torch.device(device)
        self._x, self._y = torch.from_numpy(x).to(self._device), torch.from_numpy(y).to(self._device)

    @torch.no_grad()
    def examine(self, flat: NDArray[np.float32], rows: NDArray[np.int64] | None = None) -> dict[str, float]:
        """Return {"accuracy", "loss"} of the model with parameters `flat`, `(parameters,)`; dropout is off.

        Of all test samples, or of `rows` of them; nothing if there are none.
        """
        tensors = views(self._model, torch.from_numpy(flat).to(self._device))
        samples, labels = self._x, self._y
        if rows is not None:
            chosen = torch.from_numpy(rows).to(self._device)
            samples, labels = samples[chosen], labels[chosen]
        if not len(labels):
            return {}
        right, loss = 0, 0.0
        for x, y in zip(torch.split(samples, _BATCH), torch.split(labels, _BATCH), strict=True):
            logits = forward(self._model, tensors, x)
            right += int((logits.argmax(1) == y).sum())
            loss += float(functional.cross_entropy(logits, y, reduction="sum"))
        return {"accuracy": right / len(labels), "loss": loss / len(labels)}
