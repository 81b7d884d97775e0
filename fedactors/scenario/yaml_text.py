"""YAML text as plain data, with the line of each key; limits on what is read."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fedactors.errors import ScenarioError

_LARGEST_FILE = 4_000_000  # bytes
_MOST_NODES = 200_000  # after aliases are followed: a "billion laughs" file is refused before it grows
_DEEPEST = 60

STANDARD_INPUT = "-"
Lines = dict[tuple[str, ...], int | str]  # of each key: its line, or the option that gave it


class _Loader(yaml.SafeLoader):
    """YAML whose numbers include 1e-3, which YAML 1.1 takes for a text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+"), list("-+.0123456789")
)


def read(path: Path) -> str:
    """Return the text of a scenario file, of a pipe, or of standard input if it is called "-".

    Raises ScenarioError if it cannot be read or is too large.
    """
    if str(path) == STANDARD_INPUT or path.is_fifo():
        return _piped(path)
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


@cache  # a pipe can be read once, and some commands read their scenario several times
def _piped(path: Path) -> str:
    """Return the text that comes through a pipe. Raises ScenarioError if it cannot be read or is too large."""
    try:
        with open(0 if str(path) == STANDARD_INPUT else path, "rb", closefd=str(path) != STANDARD_INPUT) as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST_FILE:
        raise ScenarioError(f"{path}: larger than a scenario file may be ({_LARGEST_FILE:,} bytes)")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not UTF-8 text: byte {error.start}") from None


def folder_of(path: Path) -> Path:
    """Return the folder in which relative paths of a scenario start: the current one if it comes through a pipe."""
    return Path() if str(path) == STANDARD_INPUT or path.is_fifo() else path.parent


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


def parse_value(text: str, source: str) -> Any:
    """Return the data of a YAML text of any form. Raises ScenarioError."""
    try:
        if (root := yaml.compose(text, Loader=_Loader)) is not None:
            _walk(root, (), {}, source, [0])
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ScenarioError(f"{source}: the value is not valid YAML") from None


def data_of(path: Path) -> dict[str, Any]:
    """Return what a scenario file holds, not validated. Raises ScenarioError if it is none, or too large."""
    return parse(read(path), str(path))[0]


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
