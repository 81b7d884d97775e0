"""The texts that stand below options in their classes, read from the source when somebody asks for them.

pydantic can do the same when a class is made (`use_attribute_docstrings`), which would cost each command a third of a
second.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from textwrap import dedent

from pydantic import BaseModel


@cache
def option_texts(kind: type[BaseModel]) -> dict[str, str]:
    """Return the text of each option of a class by its name, inherited ones included.

    An option that is declared anew has the text below its new declaration, if any. A class whose source cannot be read
    has no texts of its own.
    """
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            for name, text in _declared(base):
                found.pop(name, None)
                if text is not None:
                    found[name] = text
    return found


def _declared(kind: type) -> Iterator[tuple[str, str | None]]:
    """Yield each name that is declared in the body of a class, with the text below it."""
    try:
        source = inspect.getsource(kind)
    except OSError:
        return
    (body,) = ast.parse(dedent(source)).body
    assert isinstance(body, ast.ClassDef)
    for statement, below in pairwise([*body.body, ast.Pass()]):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, _text(below)


def _text(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        text = statement.value.value
        return inspect.cleandoc(text) if isinstance(text, str) else None
    return None
