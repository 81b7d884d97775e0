"""Python code of the user: files that a scenario names, imported under a name that says what is in them.

A scenario may say `factory: "nets.py:Net"`, a file relative to its own folder, or `factory: "package.module:Net"`.
A file is imported as the module `fedactors_user_STEM_DIGEST`, so that two versions of one file are two modules, and
objects of its classes can be pickled: a process that calls `adopt` with the `sources()` of another one imports the
same modules without having the files. A file is read when a scenario is validated, and executed by `Reference.load`.

A run folder keeps copies of the files, in `code/`. They are read in place of files that are not there. A run folder may
come from others, so an audit executes them only where that is asked for by `copies_allowed`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fedactors.errors import FedactorsError, suggestion
from fedactors.paths import impossible

PREFIX = "fedactors_user_"
CODE = "code"  # of a run folder: copies of the files
LISTED = "files.json"  # in it: which copy is which file
_LARGEST = 4_000_000  # bytes of a file


class Source(NamedTuple):
    """A file of the user as it was read."""

    module: str  # the name under which it is imported
    file: str  # absolute path
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


Files = dict[str, Source]  # by what the scenario calls them

_sources: dict[str, Source] = {}  # by module name, of this process
_noted: ContextVar[Files | None] = ContextVar("_noted", default=None)
_copies: ContextVar[bool] = ContextVar("_copies", default=False)


@contextmanager
def copies_allowed() -> Iterator[None]:
    """Let an audit execute code that came with a run folder, in the context."""
    token = _copies.set(True)
    try:
        yield
    finally:
        _copies.reset(token)


@contextmanager
def noted_files() -> Iterator[Files]:
    """Collect the files that are read in the context."""
    found: Files = {}
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def may_use_copies() -> bool:
    """Whether code in a run folder may be executed."""
    return _copies.get()


def file_of(where: str, folder: Path) -> Source:
    """Return the file that a scenario in `folder` calls `where`. Raises ValueError if it cannot be read."""
    if problem := impossible(where):
        raise ValueError(problem)
    path = folder / where
    try:
        source = read(path if path.exists() else _copy(where, folder) or path)
    except FileNotFoundError:
        raise ValueError(f"no file {path} (a path is relative to the scenario's folder)") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text: byte {error.start}") from None
    noted = _noted.get()
    if noted is not None:
        noted[where] = source
    return source


def _copy(where: str, folder: Path) -> Path | None:
    """Return the copy of a file in the run folder `folder`, if there is one."""
    try:
        listed = json.loads((folder / CODE / LISTED).read_text(encoding="utf-8"))
        return folder / CODE / Path(listed[where]["copy"]).name
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read(file: Path) -> Source:
    """Read a file of the user and make it importable. Raises OSError or UnicodeDecodeError if it cannot be read."""
    path = file.resolve()
    if path.exists() and not path.is_file():
        raise OSError(0, "not a file", str(path))
    if path.stat().st_size > _LARGEST:
        raise OSError(0, f"larger than {_LARGEST:,} bytes", str(path))
    text = path.read_text(encoding="utf-8-sig")
    stem = re.sub(r"\W", "_", path.stem)
    digest = hashlib.sha256(f"{path}\n{text}".encode()).hexdigest()
    source = Source(f"{PREFIX}{stem}_{digest[:16]}", str(path), text)
    adopt([source])
    return source


def adopt(sources: Iterable[Source]) -> None:
    """Make the files of another process importable in this one."""
    for source in sources:
        _sources.setdefault(source.module, source)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def sources() -> list[Source]:
    """Return all files that were read in this process, for `adopt` in another one."""
    return list(_sources.values())


def source_of(value: object) -> Source | None:
    """Return the file of the user that a class, function or object comes from; None if it is no such."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return _sources.get(module)


class Reference:
    """A name of something in the user's code, as a scenario gives it: `nets.py:Net`, or `package.module:Net`.

    In a pydantic model the annotation is the class itself. Files are looked for in the folder that the validation
    context gives as `folder`, the scenario's; without one, in the current folder.
    """

    def __init__(self, text: str, module: str, attribute: str, source: Source | None) -> None:
        self.text = text
        self.module = module
        self.attribute = attribute
        self.source = source

    def load(self) -> Any:
        """Return what is named. Raises whatever the user's code raises on import; AttributeError if it is not there."""
        if self.source is not None:
            adopt([self.source])
        found: Any = importlib.import_module(self.module)
        for part in self.attribute.split("."):
            if not hasattr(found, part):
                where = self.text.rpartition(":")[0]
                raise AttributeError(f"{where} has no {part}{_instead(part, found, self.module)}")
            found = getattr(found, part)
        return found

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Reference({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and (self.text, self.module) == (other.text, other.module)

    def __hash__(self) -> int:
        return hash((self.text, self.module))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        shown = core_schema.plain_serializer_function_ser_schema(str)
        return core_schema.with_info_plain_validator_function(
            _validated,
            serialization=shown,
            metadata={"pydantic_js_functions": [lambda schema, _: {"type": "string", "pattern": r"^.+:[\w.]+$"}]},
        )


def _instead(name: str, owner: object, module: str) -> str:
    """Return which name was perhaps meant: of what `module` itself defines in `owner`, a module or a class."""
    own = [key for key, value in vars(owner).items() if getattr(value, "__module__", None) == module]
    return suggestion(name, own) if own else ""


def parse(text: str, folder: Path) -> Reference:
    """Return the reference that `text` writes. Raises ValueError, with what is accepted, if there is no such file."""
    where, colon, attribute = text.rpartition(":")
    if not colon or not where or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", attribute):
        raise ValueError('must name something in Python code (accepted: "file.py:Name" or "package.module:Name")')
    if not where.endswith(".py"):
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", where):
            raise ValueError(f'"{where}" is neither a file nor a module (accepted: "file.py:Name")')
        return Reference(text, where, attribute, None)
    source = file_of(where, folder)
    return Reference(text, source.module, attribute, source)


@contextmanager
def telling(reference: Reference, what: str, error_type: type[FedactorsError]) -> Iterator[None]:
    """Turn what the user's code raises into one error of ours, with the last line of the user's file that ran."""
    try:
        yield
    except FedactorsError:
        raise
    except (Exception, SystemExit) as error:
        source = reference.source
        frames = traceback.extract_tb(error.__traceback__)
        mine = [frame for frame in frames if source is not None and frame.filename == source.file]
        if isinstance(error, SyntaxError) and error.lineno:
            where = f", line {error.lineno}"
        else:
            where = f", line {mine[-1].lineno} ({mine[-1].line})" if mine else ""
        text = " ".join(str(error).split())[:300]
        raise error_type(f"{reference}{where}: {what} {type(error).__name__}: {text}") from error


def _validated(value: Any, info: ValidationInfo) -> Reference:
    if isinstance(value, Reference):
        return value
    if not isinstance(value, str):
        raise PydanticCustomError("value_error", "must be a text such as {example}", {"example": '"nets.py:Net"'})
    folder = Path((info.context or {}).get("folder") or ".")
    try:
        return parse(value, folder)
    except ValueError as error:
        raise PydanticCustomError("value_error", "{message}", {"message": str(error)}) from None


class _Finder(MetaPathFinder):
    """Finds the modules of files of the user by their names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module is loaded; None if it is not one of the user's files."""
        source = _sources.get(fullname)
        if source is None:
            return None
        spec = ModuleSpec(fullname, _SourceLoader(source), origin=source.file)
        spec.has_location = True
        return spec


class _SourceLoader(InspectLoader):
    """Executes the text of a file. Modules that lie beside it can be imported, where the folder exists."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def get_source(self, fullname: str) -> str:
        """Return the text: tracebacks show its lines where the file is not there."""
        return self._source.text

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled text. Raises SyntaxError with the user's line."""
        return compile(self._source.text, self._source.file, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Run the text in `module`."""
        folder = str(Path(self._source.file).parent)
        if folder not in sys.path and Path(folder).is_dir():
            sys.path.append(folder)  # last: a file of the user never hides an installed module
        exec(self.get_code(module.__name__), module.__dict__)
