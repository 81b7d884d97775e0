"""Checks that a class of a plugin can be one of its kind: that it takes options, and has the methods of that kind."""

from __future__ import annotations

from typing import Any

from fedactors.errors import ScenarioError

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
    lacking = [method for method in ABLE.get(kind, ()) if not callable(getattr(found, method, None))]
    if lacking:
        raise ScenarioError(f"{who} cannot do {', '.join(lacking)} (accepted: a class that can, as those built in)")


def _check_options(found: Any, who: str, name: str) -> None:
    """Raise ScenarioError if `found` is not a class of options with a field `name` that says `name`."""
    if not (isinstance(found, type) and hasattr(found, "model_fields")):
        raise ScenarioError(f"{who} is not a class of fedactors.options.Options (accepted: a subclass of it)")
    if "name" not in found.model_fields:
        raise ScenarioError(f'{who} has no field name (accepted: name: Literal["{name}"] = "{name}")')
    default = found.model_fields["name"].default
    if default != name and name not in getattr(found.model_fields["name"].annotation, "__args__", ()):
        raise ScenarioError(f'{who} calls itself "{default}" (accepted: the name of its entry point)')
