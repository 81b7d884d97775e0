"""What a file of the user imports, found by reading it: nothing is executed.

A name means a file or package beside the importing file, unless the standard library or an installed package has it.
Such files are part of the user's code: `user_code` imports, copies and ships them as it does the file itself.
Modules from elsewhere that are not installed, such as those of an editable installation or of PYTHONPATH, are found as
well, so that a run can say what was in them; they keep their names. Calls that import a module by a literal name are
found, too (see `import_calls`); what is imported in another way is not.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from fedactors.own_code.import_calls import import_calls

_INSTALLED = {"site-packages", "dist-packages"}  # folders
_OURS = __name__.partition(".")[0]

Find = Callable[[str], "Path | None"]  # the file at a relative path, if there is one


class Module(NamedTuple):
    """A module of the user's code."""

    name: str  # dotted, as it is imported
    where: str  # what a run calls it: a path as scenarios give paths, or its name where it does not lie beside
    path: Path
    text: str
    beside: bool = True  # whether it lies beside the file that imports it

    @property
    def top(self) -> str:
        """The first part of its name."""
        return self.name.partition(".")[0]

    @property
    def is_package(self) -> bool:
        """Whether it is a package."""
        return PurePosixPath(self.where).name == "__init__.py" or self.path.name == "__init__.py"

    @property
    def imports(self) -> tuple[str, ...]:
        """What it imports, dotted names."""
        return _imports_of(self.text, self.name if self.is_package else self.name.rpartition(".")[0])


def closure(entry: Module, find: Find, read: Callable[[Path], str]) -> list[Module]:
    """Return `entry` and what it imports, directly or not. Raises what `read` raises for a file beside it."""
    found = {entry.name: entry}
    todo = [entry]
    while todo:
        for name in todo.pop().imports:
            for module, where, path, beside in _files(name, PurePosixPath(entry.where).parent, find):
                if module in found:
                    continue
                try:
                    found[module] = Module(module, where, path, read(path), beside)
                except ValueError:
                    if beside:
                        raise
                else:
                    todo.append(found[module])
    return list(found.values())


def elsewhere(name: str, read: Callable[[Path], str]) -> list[Module]:
    """Return the module that is imported as `name` and what it imports, as far as they are not installed."""
    nothing = Module("", "", Path(), f"import {name}", beside=False)
    return closure(nothing, lambda _: None, read)[1:]


def tops_from(top: str, modules: list[Module]) -> list[str]:
    """Return the first parts of the names beside that are reached from `top`, itself first, then sorted."""
    near = {module.top for module in modules if module.beside}
    reached, todo = {top}, [top]
    while todo:
        one = todo.pop()
        named = {name.partition(".")[0] for module in modules if module.top == one for name in module.imports}
        todo += sorted((named & near) - reached)
        reached |= named & near
    return [top, *sorted(reached - {top})]


@lru_cache(maxsize=256)
def _imports_of(text: str, package: str) -> tuple[str, ...]:
    """Return the names of all modules that the imports of a text may mean; those of a `package` may be relative."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()  # the import itself will say so
    found = dict[str, None]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node.level, node.module or "", package)
            found |= _inside(base, [alias.name for alias in node.names])
    for call in import_calls(tree):
        found |= _inside(_absolute(call.level, call.module, package), call.further)
    return tuple(found)


def _inside(base: str, names: Sequence[str]) -> dict[str, None]:
    """Return a module and what may be modules in it; nothing if it is outside any package."""
    return dict.fromkeys([base, *(f"{base}.{name}" for name in names if name != "*")]) if base else {}


def _absolute(level: int, module: str, package: str) -> str:
    """Return the absolute name of a `module` after `level` dots; empty if it is outside any package."""
    if not level:
        return module
    parts = package.split(".")
    above = parts[: len(parts) - level + 1] if package else []
    return ".".join([*above, *([module] if module else [])]) if above else ""


def _files(name: str, folder: PurePosixPath, find: Find) -> Iterator[tuple[str, str, Path, bool]]:
    """Yield (name, what to call it, path, whether it is beside) of a module and the packages it is in."""
    top = name.partition(".")[0]
    root = _root(top)
    if top == _OURS or top in sys.stdlib_module_names or (root is not None and _INSTALLED & set(root.parts)):
        return
    near = list(_along(name, lambda inner: find((folder / inner).as_posix())))
    for module, inner, path in near:
        yield module, (folder / inner).as_posix(), path, True
    if not near and root is not None:
        for module, _, path in _along(name, partial(_below, root)):
            yield module, module, path, False


def _below(root: Path, inner: str) -> Path | None:
    path = root / inner
    return path if path.is_file() else None


def _along(name: str, find: Find) -> Iterator[tuple[str, str, Path]]:
    """Yield (name, relative path, path) of the packages in a dotted name, and of the module itself, where they are."""
    parts = name.split(".")
    for k in range(1, len(parts) + 1):
        module = ".".join(parts[:k])
        base = "/".join(parts[:k])
        if path := find(f"{base}/__init__.py"):
            yield module, f"{base}/__init__.py", path
        elif path := find(f"{base}.py"):
            yield module, f"{base}.py", path
            return


def _root(top: str) -> Path | None:
    """Return the folder in which Python finds the package or module `top`, without importing it."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve().parent
    return Path(spec.origin).resolve().parent if spec.has_location and spec.origin else None
