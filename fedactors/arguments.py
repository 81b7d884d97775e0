"""Arguments that a scenario gives to code of the user: only what JSON can say, as which run folders keep them.

So they arrive as they were written, also from Python: tuples become lists, as YAML has no others.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BeforeValidator


def _checked(value: Any, place: str = "") -> Any:
    """Return an argument as JSON has it. Raises ValueError, which begins with its `place`, if it has no such form."""
    if isinstance(value, dict):
        return {_text(key, place): _checked(one, _joined(place, key)) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_checked(one, _joined(place, number)) for number, one in enumerate(value)]
    if value is not None and not isinstance(value, str | int | float):
        ways = "texts, numbers, true, false, null, and lists and mappings of them"
        raise ValueError(f"{place}: found {_kind(value)} (accepted: {ways})")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place}: found {value} (accepted: finite numbers)")
    return value


def _text(key: Any, place: str) -> str:
    if not isinstance(key, str):
        raise ValueError(f"{place and f'{place}: '}key {key!r} is {_kind(key)} (accepted: texts)")
    return key


def _joined(place: str, key: object) -> str:
    return f"{place}.{key}" if place else str(key)


def _kind(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "a number" if number else f"a {type(value).__name__}"


Arguments = Annotated[dict[str, Any], BeforeValidator(_checked)]
"""Keyword arguments of something callable."""
