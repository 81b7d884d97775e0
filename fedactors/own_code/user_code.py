"""Python code of the user: files that a scenario names, imported under a name that says what is in them.

A scenario may say `factory: "nets.py:Net"`, a file relative to its own folder, or `factory: "package.module:Net"`.
A file is imported as the module `fedactors_user_STEM_DIGEST`, so that two versions of one file are two modules, and
objects of its classes can be pickled for processes that do not have the file, see `user_modules`. A file is read when a
scenario is validated, and executed by `Reference.load`.

Files beside it that it imports are modules of the same kind: their texts are part of its digest, so a file whose helper
changed is another module, and imports that helper anew. See `fedactors.own_code.user_imports`.

A run folder keeps copies of the files, in `code/`. They are read in place of files that are not there. A run folder may
come from others, so an audit or export executes them only where `copies_allowed` asks for that; an export then prefers
them to the files.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fedactors.errors import FedactorsError, suggestion
from fedactors.own_code.user_imports import Module, closure, elsewhere, tops_from
from fedactors.own_code.user_modules import PREFIX, Source, adopt
from fedactors.paths import impossible

CODE = "code"  # of a run folder: copies of the files
LISTED = "files.json"  # in it: which copy is which file
_LARGEST = 4_000_000  # bytes of a file
_UNSEEN = (
    "found {}: other processes cannot see classes and functions of a script or of a notebook's cells (accepted: a file"
    ' beside it, "nets.py:{}"; a notebook writes one with %%writefile nets.py)'
)


Files = dict[str, Source]  # by what the scenario calls them

_noted: ContextVar[Files | None] = ContextVar("_noted", default=None)
_copies: ContextVar[bool] = ContextVar("_copies", default=False)
_preferred: ContextVar[Path | None] = ContextVar("_preferred", default=None)


@contextmanager
def copies_allowed() -> Iterator[None]:
    """Let an audit execute code that came with a run folder, in the context."""
    token = _copies.set(True)
    try:
        yield
    finally:
        _copies.reset(token)


@contextmanager
def copies_preferred(run: Path) -> Iterator[None]:
    """Read the copies of files in the run folder `run` in place of the files themselves, in the context."""
    token = _preferred.set(run)
    try:
        yield
    finally:
        _preferred.reset(token)


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
    """Return the file that a scenario in `folder` calls `where`; it and what it imports become importable.

    Raises ValueError if one of them cannot be read.
    """
    if problem := impossible(where):
        raise ValueError(problem)
    path = _found(where, folder)
    if path is None:
        raise ValueError(f"no file {folder / where} (a path is relative to the scenario's folder)")
    entry = Module(PurePosixPath(where).stem, where, path.resolve(), _text_of(path))
    modules = closure(entry, lambda other: _found(other, folder), _text_of)
    sources = {module.where: _source(module, modules) for module in modules}
    adopt(source for source in sources.values() if source.module.startswith(PREFIX))
    _note(sources)
    return sources[where]


def _note(sources: Files) -> None:
    """Add what was read to the files of the scenario at hand."""
    noted = _noted.get()
    if noted is not None:
        noted.update(sources)


def _source(module: Module, modules: list[Module]) -> Source:
    """Return a module of the user's code as it is imported; one of `modules`, which import one another."""
    file = str(module.path.resolve())
    if not module.beside:
        return Source(module.name, file, module.text)
    names = {top: _named(top, modules) for top in tops_from(module.top, modules)}
    rest = module.name[len(module.top) :]
    return Source(names[module.top] + rest, file, module.text, tuple(names.items()), module.is_package)


def _named(top: str, modules: list[Module]) -> str:
    """Return the name under which `top`, a file or package, is imported: it says what all that it imports holds."""
    files = [
        f"{module.path.resolve()}\n{module.text}"
        for name in tops_from(top, modules)
        for module in sorted(modules)
        if module.top == name and module.beside
    ]
    digest = hashlib.sha256("\n".join(files).encode()).hexdigest()
    return f"{PREFIX}{re.sub('[^0-9A-Za-z_]', '_', top)}_{digest[:16]}"


def _found(where: str, folder: Path) -> Path | None:
    """Return the file that a scenario calls `where`, or its copy in a run folder; None if there is neither."""
    run = _preferred.get()
    if run is not None and (copy := _copy(where, run)) is not None:
        return copy
    path = folder / where
    return path if path.exists() else _copy(where, folder)


def _copy(where: str, folder: Path) -> Path | None:
    """Return the copy of a file in the run folder `folder`, if there is one."""
    try:
        listed = json.loads((folder / CODE / LISTED).read_text(encoding="utf-8"))
        return folder / CODE / Path(listed[where]["copy"]).name
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _text_of(path: Path) -> str:
    """Return what a file of the user says. Raises ValueError if it cannot be read."""
    try:
        if not path.is_file():
            raise OSError(0, "not a file")
        if path.stat().st_size > _LARGEST:
            raise OSError(0, f"larger than {_LARGEST:,} bytes")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text: byte {error.start}") from None


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
    if where == "__main__":
        raise ValueError(_UNSEEN.format(text, attribute))
    if not where.endswith(".py"):
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", where):
            raise ValueError(f'"{where}" is neither a file nor a module (accepted: "file.py:Name")')
        _note({one.name: Source(one.name, str(one.path), one.text) for one in elsewhere(where, _text_of)})
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
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        raise PydanticCustomError("value_error", "{message}", {"message": _UNSEEN.format(name, name)})
    if not isinstance(value, str):
        raise PydanticCustomError("value_error", "must be a text such as {example}", {"example": '"nets.py:Net"'})
    folder = Path((info.context or {}).get("folder") or ".")
    try:
        return parse(value, folder)
    except ValueError as error:
        raise PydanticCustomError("value_error", "{message}", {"message": str(error)}) from None
