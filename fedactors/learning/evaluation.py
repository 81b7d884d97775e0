"""How good a model is on a test set, as a whole and on the parts that resemble the clients' and the central data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.learning.chunks import evaluation_batch
from fedactors.learning.metric_views import OutputViews
from fedactors.learning.metrics import kind_of, measured_by
from fedactors.metric_names import CLASS, LABELS, WRITTEN, MetricSpec, views_of
from fedactors.models.layers import Model
from fedactors.models.loss_description import LossDescription
from fedactors.models.loss_terms import terms
from fedactors.models.losses import losses_of_outputs, scores, spreadout
from fedactors.models.module_layer import ModuleLayer
from fedactors.models.network import forward, placed, views

_RECALL = 10  # answers that a recommender may give
_HIDDEN = ("margin", "positive", "counted", "judged")  # make the AUC; how much samples count in loss and accuracy

Float64 = NDArray[np.float64]


class ModelEvaluator:
    """Evaluates models on one test set, on one device."""

    def __init__(
        self,
        model: Model,
        evaluation_set: EvaluationSet,
        device: str = "cpu",
        metrics: Sequence[MetricSpec] = (),
    ) -> None:
        self._metrics = [spec for spec in metrics if spec.name not in WRITTEN]
        self._model = model
        self._evaluation_set = evaluation_set
        self._device = torch.device(device)
        self._x, self._y = (torch.from_numpy(part).to(self._device) for part in (evaluation_set.x, evaluation_set.y))
        self._kind = kind_of(model, self._y)
        self._views = views_of(self._metrics, self._kind)
        self._batch_size = evaluation_batch(model, device)
        self._runs_module = any(isinstance(layer, ModuleLayer) for layer in model.layers)

    @property
    def samples(self) -> int:
        """How many test samples there are."""
        return len(self._y)

    @torch.no_grad()
    def evaluate(self, flat: NDArray[np.float32], rows: NDArray[np.int64] | None = None) -> dict[str, float]:
        """Return measures of the model with parameters `flat`, `(parameters,)`; dropout is off.

        "accuracy" and "loss"; "auc" where there are two labels; "recall10" and "spreadout" of a recommender. All but
        the last are given once more for the federated and the central part of the test set, where there are such parts.
        Of all test samples, or of `rows` of them; nothing if there are none.
        """
        own = torch.from_numpy(flat).to(self._device, copy=self._runs_module)  # a module may change its weights
        tensors = views(self._model, own)
        samples, labels = (part if rows is None else part[torch.from_numpy(rows)] for part in (self._x, self._y))
        if not len(labels):
            return {}
        batches = zip(torch.split(samples, self._batch_size), torch.split(labels, self._batch_size), strict=True)
        kept = OutputViews(self._views)
        found = [self._batch(tensors, *batch, kept) for batch in batches]
        columns = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
        if (weights := self._evaluation_set.weights) is not None:
            columns = _weighed(columns, weights if rows is None else weights[rows])
        measures = self._by_part(columns, kept.joined(), kept.classes, labels, rows)
        if self._model.loss == "hinge":
            measures["spreadout"] = float(spreadout(tensors[0]))
        return measures

    def _by_part(
        self,
        columns: dict[str, Float64],
        seen: Mapping[str, Tensor],
        classes: int,
        labels: Tensor,
        rows: NDArray[np.int64] | None,
    ) -> dict[str, float]:
        """Return measures of each part of the test set that has any of the samples `rows`; `columns` are of these."""
        measures = dict[str, float]()
        for prefix, members in self._evaluation_set.parts().items():
            some = members if rows is None else members[rows]
            if some.any():
                measures |= _summary(prefix, {name: column[some] for name, column in columns.items()})
                measures |= self._named(prefix, seen, classes, labels, some)
        return measures

    def _named(
        self, prefix: str, seen: Mapping[str, Tensor], classes: int, labels: Tensor, some: NDArray[np.bool_]
    ) -> dict[str, float]:
        """Return the measures that the scenario names, of `some` samples; `seen` are the views that they need."""
        if not self._metrics:
            return {}
        if not some.all():
            chosen = torch.from_numpy(some).to(self._device)
            seen, labels = {name: column[chosen] for name, column in seen.items()}, labels[chosen]
        found = measured_by(self._metrics, self._kind, seen, classes, labels, self._model.loss)
        return {prefix + name: value for name, value in found.items()}

    def _batch(self, tensors: list[Tensor], x: Tensor, y: Tensor, kept: OutputViews) -> dict[str, Float64]:
        """Return the measures of each sample, `(batch,)`; what measures need that the scenario names is `kept`."""
        x = x.clone() if self._runs_module else placed(self._model, x)  # a module may change what it is given
        outputs = forward(self._model, tensors, x)
        answers = scores(self._model, tensors, outputs)
        kept.add(answers, y)
        if isinstance(self._model.loss, LossDescription):
            columns = described_columns(self._model.loss, self._kind, outputs, answers, y)
            return {name: column.cpu().numpy() for name, column in columns.items()}
        right = (answers.argmax(-1) == y).double().reshape(len(y), -1).mean(1)
        columns = {"accuracy": right, "loss": losses_of_outputs(self._model, tensors, outputs, y).double()}
        if self._model.loss == "hinge":
            best = answers.topk(min(_RECALL, answers.shape[-1]), dim=-1).indices
            columns["recall10"] = (best == y[:, None]).any(1).double()
        elif answers.shape[-1] == 2 and y.dim() == 1:
            columns |= {"margin": (answers[:, 1] - answers[:, 0]).double(), "positive": (y == 1).double()}
        return {name: column.cpu().numpy() for name, column in columns.items()}


def described_columns(
    loss: LossDescription, kind: str, outputs: Tensor, answers: Tensor, y: Tensor
) -> dict[str, Tensor]:
    """Return the measures of each sample, `(batch,)`, under a loss that a scenario describes."""
    own = (outputs, y) if loss.reference is None else (outputs.clone(), y.clone())  # it may change them
    found = terms(loss, *own)
    columns = {"loss": found.added.double()}
    if found.counts is not None:
        columns["counted"] = found.counts.double()
    if kind == LABELS:
        columns["accuracy"] = ((outputs > 0) == (y > 0)).double().flatten(1).mean(1)
    elif kind == CLASS and loss.label_kind != "sequence" and answers.shape[:-1] == y.shape:
        right = (answers.argmax(-1) == y).double().reshape(len(y), -1)
        ignored = loss.ignored
        there = torch.ones_like(right) if ignored is None else torch.ne(y, ignored).double().reshape(len(y), -1)
        columns["accuracy"] = (right * there).mean(1)
        if ignored is not None:
            columns["judged"] = there.mean(1)
    return columns


def _weighed(columns: dict[str, Float64], weights: NDArray[np.float32]) -> dict[str, Float64]:
    """Return the columns with samples that count in the loss by their weights."""
    counted = columns.get("counted", np.ones(len(weights)))
    return columns | {"loss": columns["loss"] * weights, "counted": counted * weights}


def _summary(prefix: str, columns: dict[str, Float64]) -> dict[str, float]:
    """Return means over what counts of the samples, and the AUC if they are of both kinds."""
    means = {prefix + name: float(column.mean()) for name, column in columns.items() if name not in _HIDDEN}
    for name, how_much in (("loss", "counted"), ("accuracy", "judged")):
        if how_much in columns:
            means[prefix + name] = float(columns[name].sum() / max(float(columns[how_much].sum()), 1e-12))
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
