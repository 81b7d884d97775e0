"""How good a model is on a test set, as a whole and on the parts that resemble the clients' and the central data."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.models.layers import Model
from fedactors.models.losses import judged, scores, spreadout
from fedactors.models.network import forward, views

_BATCH = 1000  # samples at a time; part of the result's bits, so never tuned to the machine
_RECALL = 10  # answers that a recommender may give
_RANKED = ("margin", "positive")  # columns that make the AUC

Float64 = NDArray[np.float64]


class ModelEvaluator:
    """Evaluates models on one test set, on one device."""

    def __init__(self, model: Model, evaluation_set: EvaluationSet, device: str = "cpu") -> None:
        self._model = model
        self._evaluation_set = evaluation_set
        self._device = torch.device(device)
        self._x, self._y = (torch.from_numpy(part).to(self._device) for part in (evaluation_set.x, evaluation_set.y))

    @torch.no_grad()
    def evaluate(self, flat: NDArray[np.float32], rows: NDArray[np.int64] | None = None) -> dict[str, float]:
        """Return measures of the model with parameters `flat`, `(parameters,)`; dropout is off.

        "accuracy" and "loss"; "auc" where there are two labels; "recall10" and "spreadout" of a recommender. All but
        the last are given once more for the federated and the central part of the test set, where there are such parts.
        Of all test samples, or of `rows` of them; nothing if there are none.
        """
        tensors = views(self._model, torch.from_numpy(flat).to(self._device))
        samples, labels = (part if rows is None else part[torch.from_numpy(rows)] for part in (self._x, self._y))
        if not len(labels):
            return {}
        batches = zip(torch.split(samples, _BATCH), torch.split(labels, _BATCH), strict=True)
        found = [self._batch(tensors, *batch) for batch in batches]
        measures = self._by_part({name: np.concatenate([part[name] for part in found]) for name in found[0]}, rows)
        if self._model.loss == "hinge":
            measures["spreadout"] = float(spreadout(tensors[0]))
        return measures

    def _by_part(self, columns: dict[str, Float64], rows: NDArray[np.int64] | None) -> dict[str, float]:
        """Return means over each part of the test set that has any of the samples `rows`; `columns` are of these."""
        measures = dict[str, float]()
        for prefix, members in self._evaluation_set.parts().items():
            some = members if rows is None else members[rows]
            if some.any():
                measures |= _summary(prefix, {name: column[some] for name, column in columns.items()})
        return measures

    def _batch(self, tensors: list[Tensor], x: Tensor, y: Tensor) -> dict[str, Float64]:
        """Return the measures of each sample, `(batch,)`."""
        outputs = forward(self._model, tensors, x)
        answers = scores(self._model, tensors, outputs)
        right = (answers.argmax(-1) == y).double().reshape(len(y), -1).mean(1)
        columns = {"accuracy": right, "loss": judged(self._model, tensors, outputs, y).double()}
        if self._model.loss == "hinge":
            best = answers.topk(min(_RECALL, answers.shape[-1]), dim=-1).indices
            columns["recall10"] = (best == y[:, None]).any(1).double()
        elif answers.shape[-1] == 2 and y.dim() == 1:
            columns |= {"margin": (answers[:, 1] - answers[:, 0]).double(), "positive": (y == 1).double()}
        return {name: column.cpu().numpy() for name, column in columns.items()}


def _summary(prefix: str, columns: dict[str, Float64]) -> dict[str, float]:
    """Return means over samples, and the AUC if they are of both kinds."""
    means = {prefix + name: float(column.mean()) for name, column in columns.items() if name not in _RANKED}
    if "margin" in columns and 0 < (positive := columns["positive"] == 1).sum() < len(positive):
        means[f"{prefix}auc"] = auc(columns["margin"], positive)
    return means


def auc(margins: Float64, positive: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve: the chance that a positive sample has the larger margin, ties half.

    Both are `(n,)`, and there is at least one sample of each kind. Exact (Mann and Whitney's U), without thresholds:
    torchmetrics, which the tests compare with, would first squash margins into [0, 1], where large ones become equal.
    """
    _, place, count = np.unique(margins, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]  # from 1; ties share the mean of theirs
    hits = int(positive.sum())
    return float((ranks[positive].sum() - hits * (hits + 1) / 2) / (hits * (len(positive) - hits)))
