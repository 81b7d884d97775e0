"""Names that a scenario may use, and the classes behind them.

Adding an algorithm, a data set or a policy of our own is one file and one line in `builtin_names`. Third parties add
theirs through an entry point in the group `fedactors.<kind>`, without touching this repository:

    [project.entry-points."fedactors.algorithms"]
    fedfoo = "my_package.fedfoo:FedFoo"

A scenario may also name Python files of the user's own, `plugins: [mine.py]`. What they define is known while that
scenario is read and prepared (`in_scope`), and to no other one; see `fedactors.own_code.own_plugins`.

Formats of recordings are no choice of a scenario, but come in the same way: `fedactors.formats`, instances of
`fedactors.traces.format_registry.Format`.

Classes are `Options`: their fields are what a user may write. They are imported when named, not before, and must
be importable without torch and ray, so that checking and replaying a scenario stays light.

Engines have no options: a scenario gives their name only, and they are imported where local steps are taken. They are
subclasses of `fedactors.engines.base.Engine`, listed in the order in which they are tried where no engine is named.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from fedactors.builtin_names import BUILTIN as BUILTIN
from fedactors.errors import ScenarioError, suggestion
from fedactors.own_code.plugin_checks import check

Own = Mapping[str, Mapping[str, Any]]  # by kind, then by name

_NO_OWN: Own = MappingProxyType({})
_own: ContextVar[Own] = ContextVar("_own", default=_NO_OWN)

_LONGEST_NAME = 60  # that a message shows whole


@contextmanager
def in_scope(own: Own) -> Iterator[None]:
    """Make classes of the user's files known, within the context and this thread only."""
    token = _own.set(own)
    try:
        yield
    finally:
        _own.reset(token)


def own(kind: str) -> Mapping[str, Any]:
    """Return what the files of the scenario at hand add to `kind`, by name."""
    return _own.get().get(kind, {})


def names(kind: str) -> list[str]:
    """Return every name of `kind` that can be used here, ours, the scenario's and installed plugins', sorted."""
    return sorted({*BUILTIN[kind], *own(kind), *_plugins(kind)})


def lookup(kind: str, name: str) -> type[Any]:
    """Return the class called `name` among `kind`.

    Raises ScenarioError if there is none, or if a plugin cannot be imported.
    """
    if name in BUILTIN[kind]:
        return at_path(BUILTIN[kind][name])
    if name in own(kind):
        mine: type[Any] = own(kind)[name]
        return mine
    plugins = _plugins(kind)
    if name not in plugins:
        shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
        raise ScenarioError(f'no {kind} named "{shown}"{suggestion(shown, names(kind))}')
    return _load(kind, plugins[name])


def at_path(path: str) -> type[Any]:
    """Return the class at `module:Class`."""
    module, _, attribute = path.partition(":")
    found: type[Any] = getattr(importlib.import_module(module), attribute)
    return found


def plugins(kind: str) -> list[EntryPoint]:
    """Return the entry points of installed packages that add to `kind`, sorted by name."""
    return sorted(_installed(tuple(map(_state, sys.path))).select(group=f"fedactors.{kind}"), key=lambda one: one.name)


def _state(folder: str) -> tuple[str, int]:
    """Return a folder of `sys.path` with the time of its last change; it changes when a package is installed there."""
    try:
        return folder, os.stat(folder or ".").st_mtime_ns
    except OSError:
        return folder, 0


@lru_cache(maxsize=1)
def _installed(folders: tuple[tuple[str, int], ...]) -> Any:
    """Return the entry points of all packages; reading them takes longer than all else that a small scenario needs."""
    return entry_points()


def load(kind: str, point: EntryPoint) -> Any:
    """Import what an entry point names. Raises ScenarioError, with its name, if that fails for any reason."""
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        raise ScenarioError(f"{called(kind, point)} cannot be imported: {type(error).__name__}: {error}") from error


def called(kind: str, point: EntryPoint) -> str:
    """Return what to call a plugin in a message: its name, where it is, and the package that brings it."""
    package = f" of the package {point.dist.name}" if point.dist else ""
    return f'plugin "{point.name}" ({point.value}){package} among {kind}'


def _plugins(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in plugins(kind)}


def _load(kind: str, point: EntryPoint) -> type[Any]:
    """Return the class of a plugin. Raises ScenarioError if it cannot be one of `kind`."""
    found: type[Any] = load(kind, point)
    check(kind, found, called(kind, point), point.name)
    return found
