"""What code of the user raises, as one message: the user's own lines first, none of the framework's."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fedactors.errors import FedactorsError, UserCodeError
from fedactors.own_code import user_modules

_LONGEST = 2000  # characters of an exception's own text


def told(error: BaseException) -> str:
    """Return where and how code of the user raised `error`; empty if none of its lines were at work.

    The first line names file, line, function and exception; the lines of the user's that led there follow. What has
    been told before, or was seen without an exception of the user's, is told as it is.
    """
    files = {source.file for source in user_modules.sources()}
    for one in _chain(error):
        if isinstance(one, UserCodeError):
            return str(one)
        if isinstance(one, SyntaxError) and one.filename in files:
            return f"{one.filename}, line {one.lineno}: {type(one).__name__}: {one.msg}\n    {(one.text or '').strip()}"
        frames = [frame for frame in traceback.extract_tb(one.__traceback__) if frame.filename in files]
        if frames:
            return _shown(one, frames)
    return ""


def is_own(found: object) -> bool:
    """Whether the class of an object is the user's, in a file or a package, and not one of fedactors."""
    return not type(found).__module__.startswith("fedactors.")


def class_called(kind: type[Any]) -> str:
    """Return what to call a class of the user's in a message: the name of its file, and its own."""
    try:
        return f"{Path(inspect.getfile(kind)).name}, {kind.__name__}"
    except (OSError, TypeError):  # of a notebook
        return kind.__name__


def in_a_line(text: str) -> str:
    """Return what `told` returned as one line, with the user's line in brackets and without the calls before it."""
    said, _, further = text.partition("\n    ")
    code = further.partition("\n")[0].strip()
    return " ".join(said.split()) + (f" ({code})" if code else "")


def _shown(error: BaseException, frames: list[traceback.FrameSummary]) -> str:
    last, *others = reversed(frames)
    text = str(error).strip()[:_LONGEST]
    said = _frozen(error) or (f"{type(error).__name__}: {text}" if text else type(error).__name__)
    lines = [f"{last.filename}, line {last.lineno}, {_in(last)}: {said}", f"    {last.line}"]
    for frame in others:
        lines += [f"  called from {Path(frame.filename).name}, line {frame.lineno}, {_in(frame)}", f"    {frame.line}"]
    return "\n".join(lines)


def _frozen(error: BaseException) -> str:
    """Return what to say of a value that was given to an object of options; nothing if that is not the error."""
    first = error.errors()[0] if isinstance(error, ValidationError) else None
    if first is None or first["type"] != "frozen_instance":
        return ""
    name = ".".join(map(str, first["loc"]))
    return f'"{name}" cannot be set: options stay as they are (accepted: state in what the methods return)'


def _in(frame: traceback.FrameSummary) -> str:
    return "on import" if frame.name == "<module>" else f"in {frame.name}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those it was raised from: SimPy raises a copy from the one that has the lines."""
    seen = set[int]()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


@contextmanager
def user_errors(kind: type[FedactorsError] = UserCodeError, where: str = "") -> Iterator[None]:
    """Raise `kind`, with the user's lines, in place of what code of the user raises in the context.

    Exceptions that fedactors raises on purpose, and those that no code of the user had a part in, stay as they are.
    A script of the user's that ends the program (`sys.exit`, or argparse on import) is one that raises.
    """
    try:
        yield
    except FedactorsError:
        raise
    except (Exception, SystemExit) as error:
        text = told(error)
        if not text:
            raise
        raise kind(f"{where}: {text}" if where else text) from error
