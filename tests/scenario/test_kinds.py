"""What a type checker sees of a scenario's choices is true of every class of ours that the choice accepts."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from fedactors import registry
from fedactors.scenario import kinds

TREE = ast.parse(Path(inspect.getfile(kinds)).read_text())


def base_classes():
    """Return alias -> class of the imports that only a type checker sees."""
    (guard,) = (node for node in TREE.body if isinstance(node, ast.If))
    return {
        name.asname or name.name: getattr(importlib.import_module(node.module), name.name)
        for node in guard.body
        for name in node.names
    }


def kind_of(alias):
    """Return the registry kind whose Choice stands for `alias` at run time."""
    (guard,) = (node for node in TREE.body if isinstance(node, ast.If))
    (value,) = (node.value for node in guard.orelse if node.targets[0].id == alias)
    (choice,) = (node for node in ast.walk(value) if isinstance(node, ast.Call))
    return choice.args[0].value


def test_every_alias_has_both_meanings():
    assert set(base_classes()) == set(kinds.__all__)


@pytest.mark.parametrize("alias", kinds.__all__)
def test_every_class_of_a_kind_has_the_type_that_the_checker_assumes(alias):
    base, kind = base_classes()[alias], kind_of(alias)
    for name in registry.BUILTIN[kind]:
        found = registry.lookup(kind, name)
        if getattr(base, "_is_protocol", False):
            members = {m for m in (*vars(base), *base.__annotations__) if not m.startswith("_")}
            lacking = {m for m in members if not hasattr(found, m) and m not in found.model_fields}
            assert not lacking, f"{kind} {name}"
        else:
            assert issubclass(found, base), f"{kind} {name}"
