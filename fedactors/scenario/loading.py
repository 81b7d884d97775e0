"""From a YAML file to a Scenario, and from whatever is wrong with it to one clear message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fedactors.errors import ScenarioError, suggestion
from fedactors.scenario.choice import Choice
from fedactors.scenario.model import Scenario

_LARGEST_FILE = 4_000_000  # bytes
_MOST_NODES = 200_000  # after aliases are followed: a "billion laughs" file is refused before it grows
_DEEPEST = 60
_BRANCHES = {
    "always",
    "trace",
    "synthetic",
    "int",
}  # pydantic names the branch of a union in the path; users do not write it

Lines = dict[tuple[str, ...], int | str]  # where each key stands: its line, or the option that gave it


class _Loader(yaml.SafeLoader):
    """YAML whose numbers include 1e-3, which YAML 1.1 takes for a text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+"), list("-+.0123456789")
)


def load(path: Path, overrides: Iterable[str] = ()) -> Scenario:
    """Read, override and validate the scenario at `path`. Raises ScenarioError."""
    data, lines = parse(_read(path), str(path))
    for override in overrides:
        given = apply_override(data, override)
        lines = {key: line for key, line in lines.items() if key[: len(given)] != given}
        lines[given] = f"--set {_shortened(override)}"
    return validate(data, str(path), lines, path.parent)


def data_of(path: Path) -> dict[str, Any]:
    """Return what a scenario file holds, not validated. Raises ScenarioError if it is none, or too large."""
    return parse(_read(path), str(path))[0]


def validate(data: Any, source: str, lines: Lines | None = None, folder: Path | None = None) -> Scenario:
    """Turn plain data into a Scenario. Raises ScenarioError that names `source` and the key path."""
    try:
        scenario = Scenario.model_validate(data, context={"folder": folder or Path()})
    except ValidationError as error:
        raise ScenarioError(_explain(error, source, lines or {})) from None
    scenario._source, scenario._folder = source, folder or Path()
    return scenario


def parse(text: str, source: str) -> tuple[dict[str, Any], Lines]:
    """Return the data of a YAML text and the line of each key path. Raises ScenarioError."""
    try:
        root = yaml.compose(text, Loader=_Loader)
        if not isinstance(root, yaml.MappingNode):
            raise ScenarioError(
                f"{source}: a scenario is a mapping (name, task, population, server), found nothing of it"
            )
        lines: Lines = {}
        _walk(root, (), lines, source, [0])
        return yaml.load(text, Loader=_Loader), lines
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ScenarioError(f"{source}{where}: not valid YAML: {problem}") from None
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{source}: not valid YAML: {str(error)[:200]}") from None


def apply_override(data: Any, override: str) -> tuple[str, ...]:
    """Set one `key.path=value` in scenario data and return its path; groups are found by name or number.

    Raises ScenarioError if the text has no `=` or the path leads nowhere.
    """
    path, equals, text = override.partition("=")
    if not equals or not path.strip():
        raise ScenarioError(f'--set {override}: accepted: key.path=value, such as "server.deadline=2min"')
    try:
        if (root := yaml.compose(text, Loader=_Loader)) is not None:
            _walk(root, (), {}, f"--set {_shortened(override)}", [0])
        value = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ScenarioError(f"--set {_shortened(override)}: the value is not valid YAML") from None
    keys, found = path.strip().split("."), []
    for depth, key in enumerate(keys):
        found.append(str(_number(data, key, override)) if isinstance(data, list) else key)
        if depth < len(keys) - 1:
            data = _enter(data, found[-1], ".".join(keys[: depth + 1]), override)
    _assign(data, found[-1], value, override)
    return tuple(found)


def _read(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise ScenarioError(f"{path}: cannot be read: not a file")
        if path.stat().st_size > _LARGEST_FILE:
            raise ScenarioError(f"{path}: larger than a scenario file may be ({_LARGEST_FILE:,} bytes)")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no such scenario file") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 text: byte {error.start}") from None


def _walk(node: yaml.Node, path: tuple[str, ...], lines: Lines, source: str, count: list[int]) -> None:
    """Note the line of every key; refuse double keys, depth and size beyond reason."""
    count[0] += 1
    if count[0] > _MOST_NODES or len(path) > _DEEPEST:
        raise ScenarioError(f"{source}: more entries than a scenario can have (are there nested aliases?)")
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(item, (*path, str(index)), lines, source, count)
    elif isinstance(node, yaml.MappingNode):
        names = set()
        for key, value in node.value:
            inner = (*path, str(key.value))
            if inner in names:
                raise ScenarioError(f'{source}, line {key.start_mark.line + 1}: the key "{key.value}" is given twice')
            names.add(inner)
            lines.setdefault(inner, key.start_mark.line + 1)
            _walk(value, inner, lines, source, count)


def _enter(data: Any, key: str, path: str, override: str) -> Any:
    """Step into `data[key]`, making a mapping of what is absent or only a name."""
    if isinstance(data, list):
        return data[int(key)]
    if not isinstance(data, dict):
        raise ScenarioError(f"--set {override}: leads into a value that has no keys: {path}")
    inner = data.get(key)
    if inner is None or isinstance(inner, str):
        data[key] = _default(path.split(".")) if inner is None else {"name": inner}
    return data[key]


def _default(path: list[str]) -> dict[str, Any]:
    """Return the name that stands at `path` where a scenario gives none, as a mapping; empty if there is no such."""
    kind: type[BaseModel] = Scenario
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
    if key.isdigit() and int(key) < len(items):
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


def _explain(error: ValidationError, source: str, lines: Lines) -> str:
    """Return one line per problem: file, line, key path, what was found, what is accepted."""
    problems = error.errors(include_url=False)
    texts = [_problem(detail, source, lines) for detail in problems[:10]]
    more = [f"… and {len(problems) - 10} more"] if len(problems) > 10 else []
    return "\n".join([*texts, *more])


def _problem(detail: ErrorDetails, source: str, lines: Lines) -> str:
    path = tuple(str(part) for part in detail["loc"] if str(part) not in _BRANCHES)
    line = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
    where = str(line) if isinstance(line, str) else f"{source}, line {line}" if line else source
    return f"{where}: {'.'.join(path)}: {_message(detail)}" if path else f"{where}: {_message(detail)}"


def _shortened(override: str) -> str:
    return override if len(override) <= 80 else f"{override[:77]}..."


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "is required and missing"
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if detail["type"] in ("value_error", "choice", "unknown_key"):
        return message
    found = repr(detail["input"])
    return f"found {found if len(found) <= 60 else found[:57] + '...'}, {message}"
