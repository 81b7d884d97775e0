"""Variants of a scenario in its own file: a grid of keys, a list of named changes, seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from fedactors.options import Options

Values = Annotated[list[Any], Field(min_length=1)]
_MOST = 10_000  # seeds of a study


def refuse_seeds(seeds: int | Sequence[int]) -> None:
    """Raise ValueError if `seeds`, how many or which, are none or too many, or name one twice."""
    number = seeds if isinstance(seeds, int) else len(seeds)
    found = "" if 1 <= number <= _MOST else f"{number:,}"
    if not isinstance(seeds, int) and not found and (twice := [one for one, n in Counter(seeds).items() if n > 1]):
        found = f"{twice[0]} twice"
    if found:
        raise ValueError(f"found {found} (accepted: how many, from 1 to {_MOST:,}, or a list of them, each once)")


def _checked(seeds: Any) -> Any:
    refuse_seeds(seeds)
    return seeds


Seeds = Annotated[int | list[int], AfterValidator(_checked)]
SeedList = Annotated[list[int], AfterValidator(_checked)]
Measures = list[str]


class Variant(Options):
    """A change of several keys that has a name."""

    label: str = Field(min_length=1, max_length=100)
    set: dict[str, Any] = Field(default_factory=dict)
    """The value of each key: `server.algorithm: fsl`."""


Variants = list[Variant]


class Sweep(Options):
    """Which variants `fedactors sweep` runs: every point of the grid, with every entry of the list and every seed."""

    grid: dict[str, Values] = Field(default_factory=dict)
    """The values of each key: `server.schedule.lr: [0.01, 0.1]`."""
    list: Variants = Field(default_factory=list)
    """Changes that go together, each with its label."""
    seeds: Seeds = 1
    """How many seeds, counted from the scenario's own; or which."""
    measure: str = "accuracy"
    """What the heat map shows, and what places are ranked by: of samples for validation, where there are some. Then
    `test_accuracy` is of the test samples."""
    beside: Measures = Field(default_factory=Measures)
    """Further measures, each a column of the table: seconds, bytes, joules, epsilon, …"""

    @model_validator(mode="after")
    def _check_variants(self) -> Sweep:
        if not self.grid and not self.list:
            raise ValueError("nothing is varied (accepted: a grid, a list, or both)")
        labels = [variant.label for variant in self.list]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f'list: two entries are called "{label}"')
        return self
