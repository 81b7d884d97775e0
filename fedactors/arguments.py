"""Arguments that a scenario gives to code of the user: only what JSON can say, as which run folders keep them.

So they arrive as they were written, also from Python: tuples become lists, as YAML has no others.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BeforeValidator


def _checked(value: Any, place: str = "") -> Any:
    """Return an argument as JSON has it. Raises ValueError, which begins with its `place`, if it has no such form."""
    at = f"{place}: " if place else ""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{at}key {key!r} is {_kind(key)} (accepted: texts)")
        return {key: _checked(one, f"{place}.{key}" if place else key) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_checked(one, f"{place}.{number}") for number, one in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{at}found {value} (accepted: finite numbers)")
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(
        f"{at}found {_kind(value)} (accepted: texts, numbers, true, false, null, and lists and mappings of them)"
    )


def _kind(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "a number" if number else f"a {type(value).__name__}"


Arguments = Annotated[dict[str, Any], BeforeValidator(_checked)]
"""Keyword arguments of something callable."""
