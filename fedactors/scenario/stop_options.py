"""When a run ends before its last round: a measure is good enough, or has not improved for a while.

stop: {accuracy: 0.9}                          # at least: higher accuracies are better
stop: {loss: {below: 0.3}, patience: 5}        # or 5 evaluations without a better loss
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from fedactors.errors import suggestion
from fedactors.metric_names import OF_NO_SAMPLES, TEST, WRITTEN, higher_is_better, info_of, without_part
from fedactors.options import Options


class Level(Options):
    """A bound of a measure: the run ends at it and beyond."""

    at: float | None = None
    """To be reached from the worse side; what a bare number means."""
    above: float | None = None
    """Ends the run at this value and above it."""
    below: float | None = None
    """Ends the run at this value and below it."""

    @model_validator(mode="after")
    def _check_above_or_below(self) -> Level:
        if sum(given is not None for given in (self.at, self.above, self.below)) != 1:
            raise ValueError("give either above or below")
        return self


def _bare(value: Any) -> Any:
    """Let a number stand for a level."""
    return {"at": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


class StopOptions(Options):
    """Levels of measures, by name, and patience."""

    reach: dict[str, Annotated[Level, BeforeValidator(_bare, json_schema_input_type=float | Level)]] = Field(
        default_factory=dict
    )
    """The levels; each may stand beside the other keys under the name of its measure. A bare number is to be reached
    from the worse side. The first one that is reached ends the run. Measures are those of the samples for validation,
    where there are some; `test_accuracy` is of the test samples even then."""
    patience: int | None = Field(default=None, ge=1, le=1_000_000)
    """How many evaluations without a better value of `metric` end the run."""
    metric: str | None = None
    """What `patience` and the best model go by; by default the first measure that has a level, else the accuracy, or
    the loss where labels are values."""
    min_delta: float = Field(default=0.0, ge=0.0)
    """By how much a value has to be better than the best one before it."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Allow levels under the names of measures."""
        found = super().__get_pydantic_json_schema__(schema, handler)
        handler.resolve_ref_schema(found)["additionalProperties"] = {"type": ["number", "object"]}
        return found

    @model_validator(mode="before")
    @classmethod
    def _levels_by_name(cls, data: Any) -> Any:
        """Let a level stand under the name of its measure."""
        if not isinstance(data, dict):
            return data
        known = set(cls.model_fields)
        levels = {key: value for key, value in data.items() if key not in known}
        rest = {key: value for key, value in data.items() if key in known}
        named = rest.get("reach", {})
        if not levels or not isinstance(named, dict):
            return rest  # what is no dict is refused as the field that it is
        return {**rest, "reach": {**named, **levels}}

    @model_validator(mode="after")
    def _check_reach_or_patience(self) -> StopOptions:
        if not self.reach and self.patience is None:
            raise ValueError("nothing ends the run (accepted: the level of a measure, as accuracy: 0.9, or patience)")
        if self.patience is None and self.min_delta:
            raise ValueError("min_delta goes with patience")
        return self

    @property
    def names(self) -> list[str]:
        """The measures that are named."""
        return [*self.reach, *([self.metric] if self.metric else [])]

    def check(self, own: Mapping[str, bool], has_accuracy: bool | None) -> None:
        """Raise ValueError if a measure is none of the run: `own` are those that the task names, with their directions.

        `has_accuracy` is None where that depends on the data.
        """
        there = [name for name in (*WRITTEN, "train_loss") if name != "accuracy" or has_accuracy is not False]
        for name in self.names:
            bare = without_part(name if name in own else name.removeprefix(TEST))
            of_samples = bare not in OF_NO_SAMPLES or bare == name
            if name not in own and (bare not in (*there, *own) or not of_samples):
                raise ValueError(self._missing(name, [*there, *own]))

    @staticmethod
    def _missing(name: str, there: list[str]) -> str:
        if info_of(name) is not None and name not in there:
            return f'server.stop: "{name}" is not measured (accepted: it in task.metrics, or {", ".join(there)})'
        return f'server.stop: no measure "{name}"{suggestion(name, there)}'

    def watched(self, has_accuracy: bool | None) -> str:
        """Return the measure that patience and the best model go by."""
        return self.metric or next(iter(self.reach), "accuracy" if has_accuracy else "loss")


def rises(name: str, own: Mapping[str, bool]) -> bool:
    """Return whether higher values of a measure are better; `own` are those that the task names."""
    if name in own:
        return own[name]
    known = higher_is_better(name)
    return own.get(without_part(name), False) if known is None else known
