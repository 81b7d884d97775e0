"""What a scenario learns: its data, its model, its loss and what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, field_validator

from fedactors.errors import ScenarioError
from fedactors.options import Options
from fedactors.scenario.choice import RegisteredName
from fedactors.scenario.kinds import Dataset, ModelBuilder, Partition, SampleTransforms, SourceSplit, TaskLoss
from fedactors.scenario.task.metric_options import Metric, named

if TYPE_CHECKING:
    from fedactors.data.base import Data, Info

_TRANSFORMS = BeforeValidator(lambda value: {"name": "torchvision", **value} if isinstance(value, dict) else value)


class TaskOptions(Options):
    """What is learned, and from whose data."""

    dataset: Dataset
    model: ModelBuilder
    partition: Partition
    loss: TaskLoss | None = None
    """What training minimises; by default what the model's paper has, mostly cross entropy."""
    metrics: list[Annotated[Metric, BeforeValidator(named, json_schema_input_type=str | Metric)]] = Field(
        default_factory=list
    )
    """What is measured on the test set besides accuracy and loss: `[f1_macro, top5]`."""
    validation: float | None = Field(default=None, gt=0.0, lt=1.0)
    """A share of the test samples that is put aside: by these, settings are chosen, runs are stopped and the best model
    is kept, and the test measures are those of the others. They are the same samples whatever the seed."""
    split: SourceSplit | None = None
    """What part of the data lies with a central learner and at no client."""
    transform: Annotated[SampleTransforms | None, _TRANSFORMS] = None
    """What is done to images, `{train: [...], test: [...]}`: transforms of torchvision by their names."""
    engine: Annotated[str | None, RegisteredName("engines")] = None
    """Which engine takes the clients' local steps. By default the first that supports the model, the optimiser and the
    device; engines differ in the last bits and in speed."""

    @property
    def own_metrics(self) -> dict[str, bool]:
        """The measures that are named, each with whether higher values are better."""
        return {metric.name: metric.rises for metric in self.metrics}

    @property
    def has_accuracy(self) -> bool | None:
        """Whether an accuracy is measured; None where that depends on the data."""
        kind = "class" if self.loss is None else self.loss.label_kind
        return True if kind in ("class", "multi-label") else False if kind == "value" else None

    @field_validator("metrics")
    @classmethod
    def _check_unique_metrics(cls, metrics: list[Metric]) -> list[Metric]:
        names = [metric.name for metric in metrics]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f'found "{name}" twice (accepted: each metric once)')
        return metrics

    def info(self, seed: int, clients: int) -> Info:
        """Return what is known of the data without loading them."""
        info = self._before_transform(seed, clients)
        return self.transform.info(info) if self.transform else info

    def transform_seconds(self, seed: int, clients: int) -> float:
        """Return about how many seconds transforms at random take before each run, measured on a few images."""
        return self.transform.seconds(self._before_transform(seed, clients)) if self.transform else 0.0

    def _before_transform(self, seed: int, clients: int) -> Info:
        info = self._read_dataset().info(seed, clients)
        return self.split.info(info) if self.split else info

    def load(self, seed: int, clients: int) -> Data:
        """Return the data. Raises DataError if they cannot be read."""
        data = self._read_dataset().load(seed, clients)
        data = self.split.apply(data) if self.split else data
        return self.transform.apply(data, seed) if self.transform else data

    def check(self) -> None:
        """Check that the files of the data are there. Raises DataError if one is missing."""
        self._read_dataset().check()

    def _read_dataset(self) -> Dataset:
        """Return the data set, its samples by client if the partition says how, without a label that does not count."""
        ignored = self.loss.ignored if self.loss else None
        without_label = getattr(self.dataset, "without_label", None)
        return self._by_client(without_label(ignored) if without_label and ignored is not None else self.dataset)

    def _by_client(self, dataset: Dataset) -> Dataset:
        """Return a data set, its samples by client if the partition says how."""
        if (by := getattr(self.partition, "owner", None)) is None:
            return dataset
        grouped_by = getattr(dataset, "grouped_by", None)
        if grouped_by is None:
            raise ScenarioError(
                f'task.partition.by: found {by}, but "{dataset.name}" has no columns (accepted: data of your own:'
                " torch, csv, parquet, image_folder, hugging_face)"
            )
        found: Dataset = grouped_by(by)
        return found
