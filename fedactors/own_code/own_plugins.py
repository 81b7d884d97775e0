"""Plugins that a scenario names itself: Python files, whose classes are known to that scenario and to no other one.

    plugins: [mine.py]

Every class of a file that has a `name` is taken: its kind is that of its base class, or the one whose methods it has.
Classes that begin with an underscore, and those without a name of their own, are left alone: they are helpers.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from fedactors import registry
from fedactors.errors import ScenarioError
from fedactors.own_code.plugin_checks import ABLE, check
from fedactors.own_code.user_code import file_of
from fedactors.own_code.user_errors import in_a_line, told
from fedactors.own_code.user_modules import Source

_ENGINE = "fedactors.engines.base.Engine"
_FORMAT = "fedactors.traces.format_registry.Format"
_BASES = {
    "fedactors.algorithms.members.objective.Vanilla": "membership",
    "fedactors.algorithms.participation.Weighting": "participation",
    "fedactors.attacks.base.Attack": "attacks",
    "fedactors.optim.schedule.Schedule": "schedules",
    "fedactors.clock.selections.base.Selection": "selection",
    "fedactors.clock.timings.base.Timing": "timing",
    "fedactors.clock.timings.staleness.StalenessWeight": "staleness",
    "fedactors.data.base.Dataset": "datasets",
    "fedactors.data.base.SourceSplit": "splits",
    "fedactors.data.partitions.partition.Partition": "partitions",
    "fedactors.data.server.server_data.ServerData": "server_data",
    "fedactors.learning.algorithm.base.Algorithm": "algorithms",
    "fedactors.models.builder.ModelBuilder": "models",
    "fedactors.optim.client_optimizers.Optimizer": "optimizers",
    "fedactors.transforms.base.UpdateTransform": "update_transforms",
    _ENGINE: "engines",
}


def load_plugins(files: Iterable[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the `files` of a scenario in `folder` define, by kind and name.

    Raises ScenarioError, with file and line, if a file cannot be read or imported, a class cannot be used, or a name is
    taken already.
    """
    found: dict[str, dict[str, Any]] = {}
    for where in files:
        try:
            source = file_of(where, folder)
        except ValueError as error:
            raise ScenarioError(str(error)) from None
        _add(found, source, where)
    return found


def engine_path(own: registry.Own, name: str | None) -> str | None:
    """Return the name of an engine as other processes find it: `module:Class` where it is the user's."""
    found = own.get("engines", {}).get(name) if name else None
    return name if found is None else f"{found.__module__}:{found.__qualname__}"


def _add(found: dict[str, dict[str, Any]], source: Source, where: str) -> None:
    """Add what a file defines to `found`."""
    before = sum(map(len, found.values()))
    for value in list(vars(_imported(source)).values()):
        for kind, name in _roles(value, source):
            who = f"{where}{_line(value)}: {getattr(value, '__name__', name)}"
            if kind != "formats":
                check(kind, value, who, name)
            if name in found.get(kind, {}) or name in _known(kind):
                raise ScenarioError(f'{who}: there is already "{name}" among {kind} (accepted: a name of its own)')
            found.setdefault(kind, {})[name] = value
    if sum(map(len, found.values())) == before:
        raise ScenarioError(
            f'{where}: defines nothing that can be used (accepted: a class with name: Literal["mine"] = "mine" that is'
            f" an algorithm, a data set, …; kinds: {', '.join([*registry.BUILTIN, 'formats'])})"
        )


def _imported(source: Source) -> ModuleType:
    try:
        return importlib.import_module(source.module)
    except (Exception, SystemExit) as error:
        text = in_a_line(told(error)) or f"{source.file}: {type(error).__name__}: {error}"
        raise ScenarioError(f"cannot be imported: {text}") from error


def _roles(value: Any, source: Source) -> list[tuple[str, str]]:
    """Return (kind, name) of each role that a value of a file plays; none if it is a helper."""
    if _path(type(value)) == _FORMAT:
        return [("formats", value.name)]
    if not inspect.isclass(value) or value.__module__ != source.module or value.__name__.startswith("_"):
        return []
    names = _names(value)
    return [(_kind(value, source), name) for name in names]


def _names(found: type[Any]) -> list[str]:
    """Return the names that a class gives itself."""
    field = getattr(found, "model_fields", {}).get("name")
    if field is None:
        name = vars(found).get("name")
        return [name] if isinstance(name, str) and not inspect.isabstract(found) else []
    literal = [one for one in getattr(field.annotation, "__args__", ()) if isinstance(one, str)]
    return literal or ([field.default] if isinstance(field.default, str) else [])


def _kind(found: type[Any], source: Source) -> str:
    """Return the kind of a class. Raises ScenarioError if it is none, or could be several."""
    for base in found.__mro__:
        if _path(base) in _BASES:
            return _BASES[_path(base)]
    able = {kind: len(methods) for kind, methods in ABLE.items() if _can(found, methods)}
    most = [kind for kind, count in able.items() if count == max(able.values())]
    if len(most) != 1:
        what = f"could be any of {', '.join(most)}" if most else "is of no kind that fedactors knows"
        raise ScenarioError(
            f"{Path(source.file).name}{_line(found)}: {found.__name__} has a name and {what}"
            f" (accepted: a base class, one of {', '.join(path.rpartition('.')[2] for path in _BASES)}, or the methods"
            f" of one of {', '.join(ABLE)};"
            " helpers begin with an underscore)"
        )
    return most[0]


def _can(found: type[Any], methods: Iterable[str]) -> bool:
    return all(callable(getattr(found, method, None)) for method in methods)


def _known(kind: str) -> Mapping[str, Any] | set[str]:
    """Return the names that are taken without the scenario's files."""
    if kind == "formats":
        ours = importlib.import_module(_FORMAT.rpartition(".")[0]).BUILT_IN  # imported by the file already
        return {*ours, *(point.name for point in registry.plugins(kind))}
    with registry.in_scope({}):
        return set(registry.names(kind))


def _path(found: type[Any]) -> str:
    return f"{found.__module__}.{found.__qualname__}"


def _line(value: Any) -> str:
    """Return ", line N" of a class's definition; nothing where that is not known."""
    try:
        return f", line {inspect.getsourcelines(value)[1]}"
    except (OSError, TypeError):
        return ""
