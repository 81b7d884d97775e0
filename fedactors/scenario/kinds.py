"""The types of the fields whose value is a name of the registry, one for each kind.

A type checker sees the base class of the kind, so that a wrong attribute is an error. At run time the name stands for
the `Choice` that finds and validates the class: no base class is imported, because `scenario` imports only leaves, and
checking a scenario loads no code of algorithms, models or data sets that the scenario does not name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fedactors.scenario.choice import Choice

if TYPE_CHECKING:
    from fedactors.algorithms.members.objective import Vanilla as Membership
    from fedactors.algorithms.participation import Weighting
    from fedactors.attacks.base import Attack
    from fedactors.clock.selections.base import Selection
    from fedactors.clock.timings.base import Timing
    from fedactors.data.base import Dataset, SourceSplit
    from fedactors.data.partitions.partition import Partition
    from fedactors.data.server.server_data import ServerData
    from fedactors.data.transforms.torchvision_transforms import TorchvisionTransforms as SampleTransforms
    from fedactors.learning.algorithm import Algorithm
    from fedactors.learning.combining import Aggregation
    from fedactors.models.builder import ModelBuilder
    from fedactors.models.task_losses import TaskLoss
    from fedactors.optim.client_optimizers import Optimizer
    from fedactors.optim.schedule import Schedule
    from fedactors.transforms.base import UpdateTransform
else:
    Aggregation = Annotated[Any, Choice("aggregations")]
    Algorithm = Annotated[Any, Choice("algorithms")]
    Attack = Annotated[Any, Choice("attacks")]
    Dataset = Annotated[Any, Choice("datasets")]
    Membership = Annotated[Any, Choice("membership")]
    ModelBuilder = Annotated[Any, Choice("models")]
    Optimizer = Annotated[Any, Choice("optimizers")]
    Partition = Annotated[Any, Choice("partitions")]
    SampleTransforms = Annotated[Any, Choice("transforms")]
    Schedule = Annotated[Any, Choice("schedules")]
    Selection = Annotated[Any, Choice("selection")]
    ServerData = Annotated[Any, Choice("server_data")]
    SourceSplit = Annotated[Any, Choice("splits")]
    TaskLoss = Annotated[Any, Choice("losses")]
    Timing = Annotated[Any, Choice("timing")]
    UpdateTransform = Annotated[Any, Choice("update_transforms")]
    Weighting = Annotated[Any, Choice("participation")] | None  # null is replaced before it is validated

__all__ = [
    "Aggregation",
    "Algorithm",
    "Attack",
    "Dataset",
    "Membership",
    "ModelBuilder",
    "Optimizer",
    "Partition",
    "SampleTransforms",
    "Schedule",
    "Selection",
    "ServerData",
    "SourceSplit",
    "TaskLoss",
    "Timing",
    "UpdateTransform",
    "Weighting",
]
