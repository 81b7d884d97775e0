"""Files of the user as modules: imported from their texts, under names that say what is in them, in every process."""

from __future__ import annotations

import ast
import builtins
import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from fedactors.own_code.import_calls import rename

PREFIX = "fedactors_user_"


class Source(NamedTuple):
    """A file of the user as it was read."""

    module: str  # the name under which it is imported
    file: str  # absolute path
    text: str
    names: tuple[tuple[str, str], ...] = ()  # what it imports from beside it, and as which modules
    package: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


_sources: dict[str, Source] = {}  # by module name, of this process


def adopt(sources: Iterable[Source]) -> None:
    """Make the files of another process importable in this one."""
    for source in sources:
        _sources.setdefault(source.module, source)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def sources() -> list[Source]:
    """Return all files that were read in this process, for `adopt` in another one."""
    return list(_sources.values())


class _Finder(MetaPathFinder):
    """Finds the modules of files of the user by their names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module is loaded; None if it is not one of the user's files."""
        source = _sources.get(fullname)
        if source is None:
            return _folder_of(fullname)
        spec = ModuleSpec(fullname, _SourceLoader(source), origin=source.file, is_package=source.package)
        spec.has_location = True
        if source.package:
            spec.submodule_search_locations = [str(Path(source.file).parent)]
        return spec


def _folder_of(name: str) -> ModuleSpec | None:
    """Return how a folder without `__init__.py` is imported that holds a file of the user; None if `name` is none."""
    inside = next((one for key, one in _sources.items() if key.startswith(f"{name}.")), None)
    if inside is None or not name.startswith(PREFIX):
        return None
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = []
    return spec


class _SourceLoader(InspectLoader):
    """Executes the text of a file. Modules that lie beside it can be imported, where the folder exists."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def get_source(self, fullname: str) -> str:
        """Return the text: tracebacks show its lines where the file is not there."""
        return self._source.text

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled text, in which modules beside it are imported under their names here.

        Raises SyntaxError with the user's line.
        """
        text, file, names = self._source.text, self._source.file, dict(self._source.names)
        tree = ast.parse(text, file)
        return compile(tree if rename(tree, names) else text, file, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Run the text in `module`."""
        folder = str(Path(self._source.file).parent)
        if folder not in sys.path and Path(folder).is_dir():
            sys.path.append(folder)  # last: a file of the user never hides an installed module
        if self._source.names:
            module.__dict__["__builtins__"] = _importing_as(dict(self._source.names))
        exec(self.get_code(module.__name__), module.__dict__)


def _importing_as(names: Mapping[str, str]) -> dict[str, Any]:
    """Return the builtins of a module in which the first part of an imported name has another name, by `names`."""

    def renamed(name: str, *args: Any, **named: Any) -> Any:
        level = named.get("level", args[3] if len(args) > 3 else 0)
        top, dot, rest = name.partition(".")
        return builtins.__import__(names[top] + dot + rest if not level and top in names else name, *args, **named)

    return {**vars(builtins), "__import__": renamed}
