"""What is wrong with a scenario, as one clear message."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fedactors.scenario.yaml_text import Lines

# pydantic names the branch of a union in the path, after the key it is the value of; users do not write it
_BRANCHES = {
    "availability": {"always", "trace", "synthetic", "process"},
    "within": {"always", "trace", "synthetic"},
}
_LONGEST = 2000  # characters of a message, which may quote what the user wrote
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_PATTERNS = {
    NAME: "must be made of the letters A to Z and a to z without accents, digits, dots, _ and -, and begin"
    " with a letter or a digit, because folders are named after it"
}

_OF_YAML = {  # in the words of who writes YAML, not Python
    "tuple_type": "should be a list",
    "list_type": "should be a list",
    "dict_type": "should be keys with values",
    "model_type": "should be keys with values",
    "model_attributes_type": "should be keys with values",
    "too_short": "should have {min_length} or more entries",
    "too_long": "should have {max_length} or fewer entries",
}


def explain(error: ValidationError, source: str, lines: Lines, data: object = None) -> str:
    """Return one line per problem: file, line, key path, what was found, what is accepted.

    `data` is what was validated: a group of devices is also called by the name that it has there.
    """
    problems = _apart(error.errors(include_url=False))
    texts = [_problem(detail, source, lines, data) for detail in problems[:10]]
    more = [f"… and {len(problems) - 10} more"] if len(problems) > 10 else []
    return "\n".join([*texts, *more])


def _apart(problems: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out lists that are too short only because entries of them are wrong, which is said of those entries."""
    places = [detail["loc"] for detail in problems]
    return [
        detail
        for detail in problems
        if detail["type"] != "too_short"
        or not any(len(place) > len(detail["loc"]) and place[: len(detail["loc"])] == detail["loc"] for place in places)
    ]


def _problem(detail: ErrorDetails, source: str, lines: Lines, data: object) -> str:
    loc = [str(part) for part in detail["loc"]]
    path = tuple(part for before, part in zip(["", *loc], loc, strict=False) if part not in _BRANCHES.get(before, ()))
    where = _place(path, source, lines)
    shown = ".".join(part if len(part) <= 60 else f"{part[:60]}…" for part in path)
    shown += _group(path, data)
    return f"{where}: {shown}: {_message(detail)}" if path else f"{where}: {_message(detail)}"


def _group(path: tuple[str, ...], data: object) -> str:
    """Return the name of the group that a path leads to, in brackets; nothing if it has none."""
    try:
        name = data["population"][int(path[1])]["name"] if path[0] == "population" else None  # type: ignore[index]
    except (IndexError, KeyError, TypeError, ValueError):
        return ""
    return f" (group {name})" if isinstance(name, str) and 0 < len(name) <= 60 else ""


def _place(path: tuple[str, ...], source: str, lines: Lines) -> str:
    """Return where a key stands, or the nearest key above it whose line is known."""
    line = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
    if isinstance(line, str):
        return line
    return f"{source}, line {line}" if line else source


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "is required and missing"
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if detail["type"] in ("value_error", "choice", "unknown_key"):
        return _shortened(message)
    if detail["type"] == "string_pattern_mismatch":
        message = _PATTERNS.get(detail["ctx"]["pattern"], message)
    if wording := _OF_YAML.get(detail["type"]):
        message = wording.format(**detail.get("ctx", {}))
    return f"found {_shown(detail['input'])}, {_shortened(message)}"


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:200]} … {message[-300:]}"


def _shown(found: object) -> str:
    try:
        text = repr(found)
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists
        return f"a {type(found).__name__} too large to print"
    return text if len(text) <= 60 else text[:57] + "..."
