"""Calls that import a module by a literal name: `importlib.import_module("helper")` and `__import__("helper")`.

They are found by reading a file: nothing is executed. A name that is computed is not found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_BY_MODULE = "import_module"
_BUILT_IN = "__import__"


class ImportCall(NamedTuple):
    """One such call."""

    name: ast.Constant  # dotted, with a dot before it for each package above, as in "..helper"
    further: tuple[str, ...]  # names that `__import__` is to find in the module, which may be modules of it

    @property
    def module(self) -> str:
        """The name without the dots before it."""
        return str(self.name.value).lstrip(".")

    @property
    def level(self) -> int:
        """How many dots stand before the name."""
        return len(str(self.name.value)) - len(self.module)


def import_calls(tree: ast.AST) -> Iterator[ImportCall]:
    """Yield the imports of a file that are calls; relative ones only with the package of the file, `__package__`."""
    names = {_BY_MODULE: _BY_MODULE, _BUILT_IN: _BUILT_IN} | _aliases(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called, name = names.get(_called(node.func)), _argument(node, 0, "name")
        if not called or not isinstance(name, ast.Constant) or not _is_dotted(name.value):
            continue
        found = ImportCall(name, _further(node) if called == _BUILT_IN else ())
        if _is_absolute(node, found) if called == _BUILT_IN else not found.level or _is_of_own_package(node):
            yield found


def rename(tree: ast.AST, names: Mapping[str, str]) -> bool:
    """Give the modules that calls import the names under which they are known here; return whether any had another.

    `names` has the first part of each name that is replaced.
    """
    renamed = False
    for call in import_calls(tree):
        top, dot, rest = str(call.name.value).partition(".")
        if top in names:
            call.name.value = names[top] + dot + rest
            renamed = True
    return renamed


def _is_dotted(name: object) -> bool:
    """Whether a literal can be the name of a module, with or without dots before it."""
    return isinstance(name, str) and all(part.isidentifier() for part in name.lstrip(".").split("."))


def _is_absolute(call: ast.Call, found: ImportCall) -> bool:
    """Whether a call of `__import__` starts from no package."""
    level = _argument(call, 4, "level")
    return not found.level and (level is None or (isinstance(level, ast.Constant) and level.value == 0))


def _is_of_own_package(call: ast.Call) -> bool:
    """Whether a call of `import_module` starts from the package of its file."""
    package = _argument(call, 1, "package")
    return isinstance(package, ast.Name) and package.id == "__package__"


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Return what a file calls `import_module` where it imports it under another name."""
    return {
        alias.asname: _BY_MODULE
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "importlib" and not node.level
        for alias in node.names
        if alias.asname and alias.name == _BY_MODULE
    }


def _called(function: ast.expr) -> str:
    """Return the last part of the name of what is called; empty if it has none."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    if place < len(call.args):
        return call.args[place]
    return next((one.value for one in call.keywords if one.arg == name), None)


def _further(call: ast.Call) -> tuple[str, ...]:
    """Return the literal names of a `fromlist`."""
    listed = _argument(call, 3, "fromlist")
    parts = listed.elts if isinstance(listed, ast.List | ast.Tuple) else []
    return tuple(one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str))
