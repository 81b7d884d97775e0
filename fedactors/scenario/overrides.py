"""Overrides of a scenario's keys: `server.deadline=2min`, applied to plain data before it is validated.

What is set within a value comes after what sets the whole value, whatever the order in which the two are given. So
`server.algorithm.mu=0.1` and then `server.algorithm=fedprox` is FedProx with that mu.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

from fedactors.errors import ScenarioError, suggestion
from fedactors.scenario.choice import Choice
from fedactors.scenario.yaml_text import parse_value

_DIGITS = 9  # of the number of a group
_ONE_OF = "(accepted: one of the two, or the whole value first)"

KeyPath = tuple[str, ...]  # groups by number


def applied(data: Any, overrides: Iterable[str], options: type[BaseModel]) -> Iterator[tuple[KeyPath, str]]:
    """Set each `key.path=value` in scenario data, and yield its path and the override as soon as it is set.

    Groups are found by name or number. What an earlier override has set within a value that is now replaced is set
    again, and yielded again. `options` is the class that the data are validated by. A name that it has as a default
    keeps its place when the path leads to one of the options of that name.

    Raises ScenarioError if a text has no `=`, its path leads nowhere, or it says other than an earlier one.
    """
    given: dict[KeyPath, str] = {}
    for override in overrides:
        path = _apply(data, override, options)
        yield path, override
        for key in sorted((key for key in given if _is_within(key, path)), key=len):
            text = given.pop(key)
            _refuse_contradiction(override, path, text)
            again = _apply(data, text, options)
            given[again] = text
            yield again, text
        given[path] = override


def _is_within(path: KeyPath, whole: KeyPath) -> bool:
    return len(path) > len(whole) and path[: len(whole)] == whole


def _refuse_contradiction(override: str, path: KeyPath, earlier: str) -> None:
    """Raise ScenarioError if `override`, of a whole value at `path`, says other than an `earlier` one within it.

    It does if it gives the same key another value, or a value that cannot have that key.
    """
    keys, _, text = _parts(earlier)
    value = parse_value(_parts(override)[2], source_of(override))
    said = f"{source_of(earlier)}: {source_of(override)}, after it,"
    for depth in range(len(path), len(keys)):
        value = {"name": value} if isinstance(value, str) else value
        if isinstance(value, list):
            value = value[_number(value, keys[depth], earlier)]
        elif not isinstance(value, dict):
            raise ScenarioError(f"{said} leaves {'.'.join(keys[:depth])} without keys {_ONE_OF}")
        elif keys[depth] not in value:
            return
        else:
            value = value[keys[depth]]
    if value != parse_value(text, source_of(earlier)):
        raise ScenarioError(f"{said} says {value} {_ONE_OF}")


def _parts(override: str) -> tuple[list[str], str, str]:
    """Return the keys of an override, its `=`, which is empty if it has none, and its value."""
    path, equals, text = override.partition("=")
    return path.strip().split("."), equals, text


def _apply(data: Any, override: str, options: type[BaseModel]) -> KeyPath:
    """Set one `key.path=value` in scenario data and return its path."""
    keys, equals, text = _parts(override)
    if not equals or keys == [""]:
        raise ScenarioError(f'--set {override}: accepted: key.path=value, such as "server.deadline=2min"')
    value = parse_value(text, source_of(override))
    found = list[str]()
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
