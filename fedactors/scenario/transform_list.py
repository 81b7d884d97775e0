"""The type of a list of transforms in a scenario."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from fedactors.scenario.kinds import UpdateTransform


def _listed(value: Any) -> Any:
    """Return a list of transforms as a scenario may write it. Raises ValueError if it is none."""
    if isinstance(value, (list, tuple)):
        return value
    raise ValueError("must be a list, such as [{name: topk, share: 0.01}, {name: quantize, bits: 8}]")


TransformList = Annotated[tuple[UpdateTransform, ...], Field(strict=False), BeforeValidator(_listed)]
