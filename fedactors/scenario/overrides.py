"""Overrides of a scenario's keys: `server.deadline=2min`, applied to plain data before it is validated."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from fedactors.errors import ScenarioError, suggestion
from fedactors.scenario.choice import Choice
from fedactors.scenario.yaml_text import parse_value

_DIGITS = 9  # of the number of a group


def apply_override(data: Any, override: str, options: type[BaseModel]) -> tuple[str, ...]:
    """Set one `key.path=value` in scenario data and return its path; groups are found by name or number.

    `options` is the class that the data are validated by. A name that it has as a default keeps its place when the path
    leads to one of the options of that name. Raises ScenarioError if the text has no `=` or the path leads nowhere.
    """
    path, equals, text = override.partition("=")
    if not equals or not path.strip():
        raise ScenarioError(f'--set {override}: accepted: key.path=value, such as "server.deadline=2min"')
    value = parse_value(text, source_of(override))
    keys, found = path.strip().split("."), list[str]()
    for depth, key in enumerate(keys):
        found.append(str(_number(data, key, override)) if isinstance(data, list) else key)
        if depth < len(keys) - 1:
            data = _enter(data, keys[: depth + 1], found[-1], override, options)
    _assign(data, found[-1], value, override)
    return tuple(found)


def source_of(override: str) -> str:
    """Return what a message calls an override."""
    return f"--set {override if len(override) <= 80 else override[:77] + '...'}"


def _enter(data: Any, path: list[str], key: str, override: str, options: type[BaseModel]) -> Any:
    """Step into `data[key]`, making a mapping of what is absent or only a name."""
    if isinstance(data, list):
        return data[int(key)]
    if not isinstance(data, dict):
        raise ScenarioError(f"--set {override}: leads into a value that has no keys: {'.'.join(path)}")
    inner = data.get(key)
    if inner is None or isinstance(inner, str):
        data[key] = _default(path, options) if inner is None else {"name": inner}
    return data[key]


def _default(path: list[str], options: type[BaseModel]) -> dict[str, Any]:
    """Return the default name at `path`, as a mapping; empty if there is none."""
    kind = options
    for key in path[:-1]:
        inner = kind.model_fields[key].annotation if key in kind.model_fields else None
        if not isinstance(inner, type) or not issubclass(inner, BaseModel):
            return {}
        kind = inner
    field = kind.model_fields.get(path[-1])
    if field is None or not any(isinstance(part, Choice) for part in field.metadata):
        return {}
    default = field.default
    return {"name": default} if isinstance(default, str) else {"name": default["name"]} if default else {}


def _number(items: list[Any], key: str, override: str) -> int:
    """Return the index of the item of that number or name."""
    if key.isascii() and key.isdigit() and len(key) <= _DIGITS and int(key) < len(items):
        return int(key)
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    if key in names:
        return names.index(key)
    raise ScenarioError(f'--set {override}: no group "{key}"{suggestion(key, [str(name) for name in names if name])}')


def _assign(data: Any, key: str, value: Any, override: str) -> None:
    if isinstance(data, list):
        data[int(key)] = value
    elif isinstance(data, dict):
        data[key] = value
    else:
        raise ScenarioError(f"--set {override}: leads into a value that has no keys")
