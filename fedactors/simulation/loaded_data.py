"""What of the data that were loaded goes to clients, and what to the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.attacks.base import Attackers, LabelAttack, wrong_labels
from fedactors.data.accepted import accepted
from fedactors.data.base import Data, Info, LabelledSamples
from fedactors.data.evaluation_set import EvaluationSet
from fedactors.data.on_demand import OnDemandSplit
from fedactors.data.partitions.assignment import Split
from fedactors.data.partitions.natural import NaturalPartition
from fedactors.data.partitions.reassignment import ReassignedSplit
from fedactors.data.validation import with_validation
from fedactors.errors import DataError, ScenarioError
from fedactors.learning.chunks import most_together
from fedactors.learning.training_task import SampleVariants, TrainingData, TrainingTask, on_demand_data
from fedactors.models.layers import REGULARISERS, Model
from fedactors.models.loss_description import LossDescription
from fedactors.simulation.checks.tested_clients import holds_out

if TYPE_CHECKING:
    from fedactors.simulation.prepared import Prepared


class LoadedRun(NamedTuple):
    """The training task of a run, and its data."""

    task: TrainingTask
    samples: TrainingData  # of the clients
    evaluation_set: EvaluationSet
    own: LabelledSamples  # of the server, or of a central learner


def clients_data(prepared: Prepared) -> tuple[Data, Split | ReassignedSplit | None, TrainingData]:
    """Return the data, which client holds which samples of them, and the clients' samples.

    Where clients' samples are made on demand, the data are the test set alone and nothing says who holds what.
    """
    scenario, task = prepared.scenario, prepared.scenario.task
    whole, ignored = has_whole_labels(prepared.model), label_without_loss(prepared.model)
    if (source := prepared.client_source) is not None:
        made = OnDemandSplit(source, most_together(prepared.setting.cohort))
        tests = accepted(source.tests(), task.dataset.name, whole=whole, ignored=ignored)
        return with_validation(tests, task.validation), None, on_demand_data(made)
    data = accepted(task.load(scenario.seed, scenario.devices), task.dataset.name, whole=whole, ignored=ignored)
    data = with_validation(data, task.validation)
    _check_announced(data, prepared.info)
    assigned = (data.strata, data.strata_count, prepared.sizes, scenario.seed)
    split = ReassignedSplit(task.partition, *assigned) if prepared.reallocates else task.partition.split(*assigned)
    samples = samples_of(data, split)
    attackers = prepared.label_attackers
    return data, split, with_wrong_labels(samples, attackers, data.classes) if attackers else samples


def _check_announced(data: Data, info: Info) -> None:
    """Raise DataError if there are not as many samples for validation as the data set has announced."""
    found = 0 if data.validation_y is None else len(data.validation_y)
    if found != info.validation_size:
        raise DataError(
            f'data set "{info.name}": {found:,} samples for validation (accepted: {info.validation_size:,}, the'
            " validation_size that info returns)"
        )


def samples_of(data: Data, split: Split | ReassignedSplit) -> TrainingData:
    """Return the clients' samples, all variants of each if there are several."""
    if data.variants is None:
        return TrainingData(data.x, data.y, split, weights=data.weights)
    variants = SampleVariants(len(data.variants) // len(data.y), len(data.y))
    y = np.concatenate([data.y] * variants.copies)
    weights = None if data.weights is None else np.concatenate([data.weights] * variants.copies)
    return TrainingData(data.variants, y, split, weights=weights, variants=variants)


def with_wrong_labels(samples: TrainingData, attackers: Sequence[Attackers], classes: int) -> TrainingData:
    """Return the samples with the labels that attackers learn from; others that hold a sample keep the right label.

    Of samples that are held more than once, attackers have copies. Raises ScenarioError if an attack makes others than
    labels.
    """
    split = samples.split
    assert isinstance(split, Split)
    holders = np.bincount(split.indices, minlength=len(samples.y))
    indices, y = np.array(split.indices), np.array(samples.y)
    copied: list[NDArray[np.int64]] = []
    for group in attackers:
        assert isinstance(group.attack, LabelAttack)
        mine = slice(int(split.offsets[group.first]), int(split.offsets[group.last]))
        held = split.indices[mine]
        found = wrong_labels(group.attack, samples.y[held], classes)
        shared = holders[held] > 1
        y[held[~shared]] = found[~shared]
        indices[mine][shared] = np.arange(len(y), len(y) + int(shared.sum()))
        y = np.concatenate([y, found[shared]])
        copied.append(held[shared])
    split = Split(split.offsets, indices)
    if not any(map(len, copied)):
        return replace(samples, y=y, split=split)
    rows = np.concatenate([np.arange(len(samples.y)), *copied])
    weights = None if samples.weights is None else samples.weights[rows]
    return replace(samples, x=samples.x[rows], y=y, weights=weights, split=split)


def has_whole_labels(model: Model) -> bool:
    """Whether the loss of a model is about classes, so that labels must be whole numbers."""
    return not isinstance(model.loss, LossDescription) or model.loss.label_kind in ("class", "sequence")


def label_without_loss(model: Model) -> int | None:
    """Return the label that does not count in the loss of a model, if there is one."""
    return model.loss.ignored if isinstance(model.loss, LossDescription) else None


def evaluation_set_of(data: Data) -> EvaluationSet:
    """Return what the server evaluates models on."""
    validation = None
    if data.validation_x is not None and data.validation_y is not None:
        validation = EvaluationSet(data.validation_x, data.validation_y, data.validation_central)
    return EvaluationSet(data.test_x, data.test_y, data.test_central, validation=validation)


def holdout_of(prepared: Prepared, data: Data) -> Split | None:
    """Return which test samples each client holds out, if clients do: of those that are not like the central data."""
    scenario = prepared.scenario
    if not holds_out(scenario.server):
        return None
    partition, among = scenario.task.partition, (scenario.devices, scenario.seed)
    if data.test_central is None or isinstance(partition, NaturalPartition):  # where the data say whose samples are
        return partition.holdout(data, *among)
    rows = np.flatnonzero(~data.test_central)
    held = partition.holdout(replace(data, test_x=data.test_x[rows], test_y=data.test_y[rows]), *among)
    return Split(held.offsets, rows[held.indices])


def own_of(prepared: Prepared, data: Data, split: Split | ReassignedSplit | None) -> LabelledSamples:
    """Return the samples of the server or the central learner; a regulariser looks at one that says nothing.

    Raises ScenarioError if samples have weights that the central loss does not know.
    """
    server = prepared.scenario.server
    if server.algorithm.central_loss in REGULARISERS:
        return LabelledSamples(np.zeros((1, *data.x.shape[1:]), np.float32), np.zeros((1, *data.y.shape[1:]), np.int64))
    if server.data is None or not isinstance(split, Split):  # `prepare` refuses a scenario that has both
        return LabelledSamples(data.x[:0], data.y[:0])
    own = LabelledSamples(*server.data.draw(data, split, prepared.scenario.seed))
    transform = prepared.scenario.task.transform
    if transform and getattr(server.data, "elsewhere", False):
        own = own._replace(x=transform.of_training(own.x))
    loss = server.algorithm.central_loss or prepared.model.loss
    if own.weights is not None and not isinstance(loss, LossDescription):
        raise ScenarioError(
            f"server.data: samples have weights, of which the loss {loss} knows nothing (accepted: samples without"
            " weights, task.loss: cross_entropy, or no other loss for the central learner)"
        )
    return own
