"""Progress in a notebook: a bar under the cell, of plain HTML, which every notebook can show without a widget."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import Any

from fedactors.simulation.progress import Progress, Silent, describe

_SECONDS = 0.2  # between drawings


def in_notebook() -> bool:
    """Whether this code runs in the kernel of a notebook; IPython is not imported for that."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def unasked() -> Progress:
    """Return what shows progress by default: a bar in a notebook, nothing elsewhere."""
    return NotebookProgress() if in_notebook() else Silent()


class NotebookProgress:
    """A bar and the figures of the last round; notes stand under it. It stays as it was at the end."""

    def __init__(self) -> None:
        self._name = ""
        self._rounds = 0
        self._done = 0
        self._said = "starting"
        self._notes: list[str] = []
        self._drawn = 0.0
        self._shown: Any = None

    @contextmanager
    def over(self, name: str, rounds: int) -> Iterator[None]:
        """Show the bar while the context lasts."""
        self._name = name
        self._rounds = rounds
        self._draw()
        try:
            yield
        finally:
            self._draw()

    def round(self, row: Mapping[str, Any]) -> None:
        """Move the bar, if it has not just been moved."""
        self._done = row["round"]
        self._said = describe(row, self._rounds)
        if time.monotonic() - self._drawn >= _SECONDS:
            self._draw()

    def note(self, text: str) -> None:
        """Show a text under the bar."""
        self._notes.append(text)
        self._draw()

    def _draw(self) -> None:
        ipython: Any = import_module("IPython.display")  # whose functions have no types
        self._drawn = time.monotonic()
        page = ipython.HTML(self._html())
        if self._shown is None:
            self._shown = ipython.display(page, display_id=True)
        else:
            self._shown.update(page)

    def _html(self) -> str:
        bar = f'<progress value="{self._done}" max="{max(self._rounds, 1)}"></progress>'
        notes = "".join(f"<pre>{escape(text)}</pre>" for text in self._notes)
        return f"<div>{escape(self._name)} {bar} {escape(self._said)}</div>{notes}"
