"""YAML text as plain data, with the line of each key, and plain data as YAML text; limits on what is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from fedactors import packaged
from fedactors.errors import ScenarioError

_LARGEST_FILE = 2_000_000  # bytes
_MOST_NODES = 50_000  # as written, and after aliases are followed: a "billion laughs" file is refused before it grows
_DEEPEST = 60
_LONGEST_NUMBER = 100  # characters
_TAG = "tag:yaml.org,2002:"
_NUMBERS = (f"{_TAG}int", f"{_TAG}float")
_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$", re.ASCII)
_DIGITS = list("-+.0123456789")  # with which such a number begins
_SURROGATE = re.compile("[\ud800-\udfff]")

STANDARD_INPUT = "-"
Lines = dict[tuple[str, ...], int | str]  # of each key: its line, or the option that gave it


class _Loader(yaml.SafeLoader):
    """YAML whose numbers include 1e-3, which YAML 1.1 takes for a text, and whose dates and keys are texts."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node. Raises ComposerError after more than a scenario can have."""
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise ComposerError(None, None, f"more entries than a scenario can have ({_MOST_NODES:,})", None)
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node. Raises ConstructorError, with its place, where its text has no such value."""
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ConstructorError(None, None, f"{_shown(node)} is no {_kind(node)}", node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping whose keys `on`, `off`, `yes` and `no` are texts: YAML 1.1 takes them for true and false."""
        for key, _ in node.value:
            if key.tag == f"{_TAG}bool":
                key.tag = f"{_TAG}str"
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """Return the text of a node, with an emoji that is written as a surrogate pair as one character."""
        text = super().construct_scalar(node)
        if node.tag in _NUMBERS and len(text) > _LONGEST_NUMBER:
            raise ConstructorError(
                None, None, f"a number of {len(text):,} digits (accepted: {_LONGEST_NUMBER})", node.start_mark
            )
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16") if _SURROGATE.search(text) else text
        except UnicodeDecodeError:
            raise ConstructorError(
                None, None, "half of a surrogate pair, which is no character", node.start_mark
            ) from None


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAG}timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_TAG}float", _EXPONENT, _DIGITS)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """YAML whose texts are texts for `_Loader` as well: one that looks like 1e-3 is put in quotes."""


_Dumper.add_implicit_resolver(f"{_TAG}float", _EXPONENT, _DIGITS)


def _shown(node: yaml.Node) -> str:
    text = str(node.value)
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def _kind(node: yaml.Node) -> str:
    return str(node.tag).removeprefix(_TAG)


def read(path: Path) -> str:
    """Return the text of a scenario file, of a pipe, or of standard input if it is called "-".

    Raises ScenarioError if it cannot be read or is too large.
    """
    if str(path) == STANDARD_INPUT or path.is_fifo():
        return _piped(path)
    if path.is_dir():
        raise ScenarioError(
            f"{path}: is a folder, not a scenario file (accepted: a file, or a name that `fedactors scenarios` lists)"
        )
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


def given_data(given: str | Path | Mapping[str, Any]) -> tuple[dict[str, Any], Lines, str, Path]:
    """Return the data of a scenario, the line of each key path, what to call it, and where its relative paths start.

    What is given is a file, the name of a scenario that comes with fedactors, or the data themselves. Raises
    ScenarioError.
    """
    if isinstance(given, Mapping):
        return deepcopy(dict(given)), {}, f'scenario "{given.get("name", "")}"', Path()
    path = packaged.located(given)
    data, lines = parse(read(path), str(path))
    return data, lines, str(path), folder_of(path)


def folder_of(path: Path) -> Path:
    """Return the folder in which relative paths of a scenario start: the current one if it comes through a pipe."""
    return Path() if str(path) == STANDARD_INPUT or path.is_fifo() else path.parent


def parse(text: str, source: str) -> tuple[dict[str, Any], Lines]:
    """Return the data of a YAML text and the line of each key path. Raises ScenarioError."""
    data, lines = _parsed(text, source)
    return deepcopy(data), dict(lines)


@lru_cache(maxsize=8)  # a study validates hundreds of variants of one file
def _parsed(text: str, source: str) -> tuple[dict[str, Any], Lines]:
    try:
        root, lines = _composed(text, source)
        if not isinstance(root, yaml.MappingNode):
            raise ScenarioError(
                f"{source}: a scenario is a mapping (name, task, population, server), found nothing of it"
            )
        return _constructed(root), lines
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ScenarioError(f"{source}{where}: not valid YAML: {_problem(error)}") from None
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{source}: not valid YAML: {str(error)[:200]}") from None


def parse_value(text: str, source: str) -> Any:
    """Return the data of a YAML text of any form. Raises ScenarioError."""
    try:
        root, _ = _composed(text, source)
        return None if root is None else _constructed(root)
    except yaml.YAMLError as error:
        raise ScenarioError(f"{source}: the value is not valid YAML: {_problem(error)}") from None
    except (ValueError, RecursionError):
        raise ScenarioError(f"{source}: the value is not valid YAML") from None


def _composed(text: str, source: str) -> tuple[yaml.Node | None, Lines]:
    """Return the nodes of a YAML text, within the limits, and the line of each key."""
    lines: Lines = {}
    if (root := yaml.compose(text, Loader=_Loader)) is not None:
        _walk(root, (), lines, source, [0])
    return root, lines


def _constructed(root: yaml.Node) -> Any:
    loader = _Loader("")
    try:
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or str(error).splitlines()[0])[:200]


def written(data: Mapping[str, Any]) -> str:
    """Return the YAML text of plain data, keys in their order; `parse` reads it as they were."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


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
                raise ScenarioError(
                    f'{source}, line {key.start_mark.line + 1}: the key "{str(key.value)[:60]}" is given twice'
                )
            names.add(inner)
            lines.setdefault(inner, key.start_mark.line + 1)
            _walk(value, inner, lines, source, count)
