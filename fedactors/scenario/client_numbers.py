"""How many clients a round wants: a number, or a share that becomes one when the devices are counted."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

_Share = Annotated[float, Field(gt=0, lt=1)]


def _number_or_share(least: int, others: tuple[object, ...], accepted: str) -> Any:
    """Return the check of a number from `least` on, a share, or one of some `others`; it raises ValueError."""

    def check(value: Any) -> Any:
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= least
        if is_number or value in others or (isinstance(value, float) and 0 < value < 1):
            return value
        raise ValueError(f"found {str(value)[:60]!r} (accepted: {accepted})")

    return check


Cohort = Annotated[
    int | Literal["all"],
    PlainValidator(
        _number_or_share(
            1, ("all",), "a number of clients such as 10, a share of all devices between 0 and 1 such as 0.1, or all"
        ),
        json_schema_input_type=Annotated[int, Field(ge=1)] | _Share | Literal["all"],
    ),
]
OverSelection = Annotated[
    int,
    PlainValidator(
        _number_or_share(0, (), "a number of clients such as 3, or a share of the cohort between 0 and 1 such as 0.3"),
        json_schema_input_type=Annotated[int, Field(ge=0)] | _Share,
    ),
]
Quorum = Annotated[
    int | None,
    PlainValidator(
        _number_or_share(
            1, (None,), "a number of updates such as 8, or a share of the cohort between 0 and 1 such as 0.8"
        ),
        json_schema_input_type=Annotated[int, Field(ge=1)] | _Share | None,
    ),
]


def number_of(value: Any, whole: int) -> Any:
    """Return a share as a number of `whole`, to the nearest, halves up, and at least 1; anything else as it is."""
    if not isinstance(value, float):
        return value
    return max(1, floor(Fraction(str(value)) * whole + Fraction(1, 2)))
