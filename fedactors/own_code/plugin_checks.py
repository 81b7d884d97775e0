"""Checks that a class of a plugin can be one of its kind: that it takes options, and has the methods of that kind."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator
from typing import Any

from fedactors.errors import ScenarioError

_OURS = __name__.partition(".")[0]
_ALIKE = 0.85  # of 1: how near a misspelt name is to the one that is meant
_WITHOUT_OPTIONS = ("engines",)  # kinds whose classes take no options
# Methods that a class of a kind must have; what else it lacks is found when it is used.
ABLE = {
    "algorithms": ("start", "upload", "aggregate", "payload"),
    "datasets": ("info", "check", "load"),
    "engines": ("supports", "train"),
    "models": ("build",),
    "optimizers": ("start", "step"),
    "losses": ("describe", "outputs"),
    "aggregations": ("combine",),
    "participation": ("weigh",),
    "partitions": ("sizes", "split"),
    "schedules": ("rate", "at"),
    "selection": ("start",),
    "update_transforms": ("wire", "apply"),
    "server_data": ("size", "check", "draw"),
}


def check(kind: str, found: Any, who: str, name: str) -> None:
    """Raise ScenarioError, in which it is called `who`, if `found` cannot be the class called `name` of `kind`."""
    if kind not in _WITHOUT_OPTIONS:
        _check_options(found, who, name)
    elif not isinstance(found, type):
        raise ScenarioError(f"{who} is not a class (accepted: a subclass of fedactors.engines.base.Engine)")
    for problem in (*_no_properties(found), *_misspelt(found)):
        raise ScenarioError(f"{who}: {problem}")
    lacking = [method for method in ABLE.get(kind, ()) if not callable(getattr(found, method, None))]
    if lacking:
        raise ScenarioError(f"{who} cannot do {', '.join(lacking)} (accepted: a class that can, as those built in)")


def _no_properties(found: type[Any]) -> Iterator[str]:
    """Yield what the class itself has as a method, or as a property, that is the other one in a base of ours."""
    for name, value in vars(found).items():
        ours = next((vars(base)[name] for base in _bases(found) if name in vars(base)), None)
        if isinstance(ours, property) and inspect.isfunction(value):
            yield f"{name} is a method (accepted: a property, with @property above its def)"
        if inspect.isfunction(ours) and isinstance(value, property):
            yield f"{name} is a property (accepted: a method, without @property)"


def _misspelt(found: type[Any]) -> Iterator[str]:
    """Yield which methods of the class itself nobody calls, and a base of ours has nearly by that name."""
    methods = {name for name in _public(found) if inspect.isfunction(vars(found)[name])}
    theirs = {name for base in _bases(found) for name in _public(base)}
    used = {name for value in vars(found).values() for name in _names_in(getattr(value, "fget", value))}
    for name in sorted(methods - theirs - used):
        if close := difflib.get_close_matches(name, theirs - methods, n=1, cutoff=_ALIKE):
            yield f'nothing calls {name}; did you mean "{close[0]}"? (helpers begin with _)'


def _public(found: type[Any]) -> list[str]:
    return [name for name in vars(found) if not name.startswith("_")]


def _names_in(function: Any) -> Iterator[str]:
    """Yield the names of all that a function refers to."""
    todo = [getattr(function, "__code__", None)]
    while todo:
        if (code := todo.pop()) is not None:
            yield from code.co_names
            todo += [one for one in code.co_consts if inspect.iscode(one)]


def _bases(found: type[Any]) -> list[type[Any]]:
    """Return the classes of ours that a class is derived from."""
    return [base for base in found.__mro__[1:] if base.__module__.partition(".")[0] == _OURS]


def _check_options(found: Any, who: str, name: str) -> None:
    """Raise ScenarioError if `found` is not a class of options with a field `name` that says `name`."""
    if not (isinstance(found, type) and hasattr(found, "model_fields")):
        raise ScenarioError(f"{who} is not a class of fedactors.options.Options (accepted: a subclass of it)")
    if "name" not in found.model_fields:
        raise ScenarioError(f'{who} has no field name (accepted: name: Literal["{name}"] = "{name}")')
    default = found.model_fields["name"].default
    if default != name and name not in getattr(found.model_fields["name"].annotation, "__args__", ()):
        raise ScenarioError(f'{who} calls itself "{default}" (accepted: the name of its entry point)')
