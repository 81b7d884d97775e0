"""What a scenario measures on the test set besides accuracy and loss: names of measures, or functions of the user."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field, model_validator

from fedactors.arguments import Arguments
from fedactors.errors import suggestion
from fedactors.metric_names import METRICS, WRITTEN, MetricSpec, info_of
from fedactors.options import Options
from fedactors.own_code.user_code import Reference

_TAKEN = (
    *WRITTEN,
    "validation_accuracy",
    "validation_loss",
    "train_loss",
    "lr",
    "round",
    "asked",
    "heard",
    "steps",
    "cost",
    "joules",
    "co2_grams",
    "epsilon",
    "losses",
    "moves",
)


class Metric(Options):
    """One measure: a name that is known, or any name with a function of outputs and labels."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)
    factory: Reference | None = None
    """`metrics.py:my_metric` (relative to the scenario) or `package.module:Metric`: a function of all outputs and all
    labels of the test set that returns a number, or a class of such objects."""
    arguments: Arguments = Field(default_factory=dict)
    """Keyword arguments of the function in every call, or of the class once."""
    higher_is_better: bool | None = None
    """For a function of your own: which of its values are better."""

    @model_validator(mode="after")
    def _check_metric_name(self) -> Metric:
        if self.factory is None:
            if info_of(self.name) is None:
                raise ValueError(f'no metric named "{self.name}"{suggestion(self.name, [*METRICS, "top5"])}')
            if self.arguments or self.higher_is_better is not None:
                raise ValueError("arguments and higher_is_better are for a factory")
            return self
        if info_of(self.name) is not None or self.name in _TAKEN or "_seconds" in self.name or "bytes_" in self.name:
            raise ValueError(f'name: "{self.name}" is a column of metrics already (accepted: another name)')
        if self.higher_is_better is None:
            raise ValueError("higher_is_better is required with a factory (accepted: true or false)")
        return self

    @property
    def rises(self) -> bool:
        """Whether higher values are better."""
        known = info_of(self.name)
        return bool(self.higher_is_better) if known is None else known.higher_is_better

    def spec(self) -> MetricSpec:
        """Return the measure as it travels to the evaluator."""
        return MetricSpec(self.name, self.factory, json.dumps(self.arguments, sort_keys=True))


def named(value: Any) -> Any:
    """Let a bare name stand for a measure without options."""
    return {"name": value} if isinstance(value, str) else value
