"""Who holds what: the training samples of each client by label, worked out without a model and without a fleet."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.attacks.base import LabelAttack
from fedactors.data.base import Data, Int64
from fedactors.data.partitions.assignment import Split
from fedactors.data.validation import info_with_validation
from fedactors.errors import ScenarioError, naming
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.population_memory import refuse_too_many

_BINS = 8  # of labels that are values


def holdings(scenario: Scenario, shown: int) -> dict[str, Any]:
    """Return who holds what, as plain figures; the labels of the first `shown` clients one by one.

    Raises ScenarioError or DataError, naming the scenario's file, if the data cannot be read or assigned.
    """
    with naming(scenario.source):
        return _holdings(scenario, shown)


def _holdings(scenario: Scenario, shown: int) -> dict[str, Any]:
    task = scenario.task
    clients, seed = scenario.devices, scenario.seed
    refuse_too_many(clients)
    if getattr(task.partition, "reallocate", False):
        raise ScenarioError("task.partition.reallocate: clients hold other samples in every round (accepted: false)")
    info = info_with_validation(task.info(seed, clients), task.validation)
    sizes = task.partition.sizes(info, clients, seed)
    task.check()
    data = task.load(seed, clients)
    split = task.partition.split(data.strata, data.strata_count, sizes, seed)
    names, columns = _columns(data)
    counts = _counts(split, columns, clients)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    overall = counts.sum(0) / max(int(counts.sum()), 1)
    holding = counts.sum(1) > 0
    unlike = np.abs(shares - overall).sum(1)[holding] / 2
    return {
        "name": scenario.name,
        "dataset": info.name,
        "partition": task.partition.name,
        "kind": info.kind,
        "train": info.train_size,
        "test": info.test_size,
        **({"validation": info.validation_size} if info.validation_size else {}),
        "held": int(sizes.sum()),
        "input_shape": list(info.input_shape),
        "inputs": [{"name": one.name, "shape": list(one.shape), "integer": one.integer} for one in info.inputs],
        "clients": clients,
        "client_names": list(data.client_names[:shown]),
        "sizes": sizes.tolist(),
        "smallest": int(sizes.min()),
        "median": float(np.median(sizes)),
        "largest": int(sizes.max()),
        "without": int((sizes == 0).sum()),
        "labels": names,
        "of_label": counts.sum(0).tolist(),
        "labels_per_client": float((counts[holding] > 0).sum(1).mean()) if names and holding.any() else None,
        # half the sum of absolute differences between a client's shares of labels and those of all, its mean
        "label_distance": float(unlike.mean()) if names and holding.any() else None,
        "counts": counts[:shown].tolist(),
        "attackers": [one.name for one in scenario.population if isinstance(one.attack, LabelAttack)],
    }


def _columns(data: Data) -> tuple[list[str], NDArray[Any]]:
    """Return names of labels, and which of them each training sample has, as numbers `(n,)` or marks `(n, labels)`."""
    if data.kind == "class" and data.y.ndim == 1:
        return list(data.label_names) or [str(label) for label in range(data.classes)], data.y
    if data.kind == "multi-label":
        return [str(label) for label in range(data.classes)], data.y
    if data.kind == "value" and data.y.ndim == 1:
        edges = np.linspace(data.y.min(), data.y.max(), _BINS + 1)
        names = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges.tolist())]
        return names, np.minimum(np.searchsorted(edges[1:-1], data.y, side="right"), _BINS - 1)
    return [], np.zeros(len(data.y), np.int64)


def _counts(split: Split, columns: NDArray[Any], clients: int) -> Int64:
    """Return the samples of each label at each client, `(clients, labels)`."""
    owner = np.repeat(np.arange(clients), np.diff(split.offsets))
    mine = columns[split.indices]
    if mine.ndim == 2:
        counts = np.zeros((clients, mine.shape[1]), dtype=np.int64)
        np.add.at(counts, owner, mine.astype(np.int64))
        return counts
    labels = int(columns.max(initial=0)) + 1
    found = np.bincount(owner * labels + mine.astype(np.int64), minlength=clients * labels)
    return found.astype(np.int64).reshape(clients, labels)
