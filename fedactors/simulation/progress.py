"""Shows the progress of a run: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

_PLAIN_SECONDS = 5.0  # between plain lines
_TIMED_ROUNDS = 2  # and seconds, after which the pace is known
_TIMED_SECONDS = 2.0


class Progress(Protocol):
    """Receives every round when it is recorded."""

    def over(self, name: str, rounds: int) -> AbstractContextManager[None]:
        """Show progress while the context lasts."""
        ...

    def round(self, row: Mapping[str, Any]) -> None:
        """Take in a row of metrics."""
        ...

    def note(self, text: str) -> None:
        """Show a text that is not a round."""
        ...


class Silent:
    """Shows nothing."""

    @contextmanager
    def over(self, name: str, rounds: int) -> Iterator[None]:
        """Do nothing while the context lasts."""
        yield

    def round(self, row: Mapping[str, Any]) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""


class Plain:
    """A line every few seconds, for logs."""

    def __init__(self) -> None:
        self._rounds = 0
        self._first = 0  # round that is shown: a run that was resumed has others before it
        self._began = 0.0
        self._said = 0.0
        self._foreseen = False

    @contextmanager
    def over(self, name: str, rounds: int) -> Iterator[None]:
        """Say when it begins."""
        self._rounds = rounds
        print(f"{name}: {rounds} rounds", file=sys.stderr, flush=True)
        yield

    def round(self, row: Mapping[str, Any]) -> None:
        """Print the row if it is time, or the last; once, as soon as the pace is known, how long the run will take."""
        now = time.monotonic()
        self._began = self._began or now  # the first round also waits for the fleet to start: it tells no pace
        self._first = self._first or row["round"]
        timed = row["round"] - self._first
        self._forecast(row["round"], timed, now - self._began)
        if now - self._said >= _PLAIN_SECONDS or row["round"] == self._rounds:
            self._said = now
            left = (now - self._began) / max(timed, 1) * (self._rounds - row["round"])
            print(
                f"{describe(row, self._rounds)}{f'  left ~{left:.0f} s' if left else ''}",
                file=sys.stderr,
                flush=True,
            )

    def _forecast(self, done: int, timed: int, seconds: float) -> None:
        """Print how long the rounds after `done` will take, if enough were `timed`, and it is worth a line."""
        if self._foreseen or timed < _TIMED_ROUNDS or seconds < _TIMED_SECONDS:
            return
        self._foreseen = True
        left = seconds / timed * (self._rounds - done)
        if left > seconds:
            print(f"forecast: {left:.0f} s more for {self._rounds - done} rounds", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Print the text."""
        print(text, file=sys.stderr, flush=True)


class Live:
    """A bar on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}", markup=False),
        )
        self._bar = Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True))
        self._task: Any = None

    @contextmanager
    def over(self, name: str, rounds: int) -> Iterator[None]:
        """Show the bar while the context lasts."""
        with self._bar:
            self._task = self._bar.add_task(name, total=rounds, said="starting the fleet")
            yield

    def round(self, row: Mapping[str, Any]) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=row["round"], said=_figures(row))

    def note(self, text: str) -> None:
        """Print above the bar."""
        from rich.text import Text

        self._bar.console.print(Text(text))  # in a plain string [red] and :x: would have a meaning


class Stoppable:
    """Ends the run at the next round once `stop` says so: an interrupt may have been lost on the way."""

    def __init__(self, shown: Progress, stop: Callable[[], bool]) -> None:
        self.over = shown.over
        self.note = shown.note
        self._shown = shown
        self._stop = stop

    def round(self, row: Mapping[str, Any]) -> None:
        """Show the row. Raises KeyboardInterrupt if the run is to stop."""
        self._shown.round(row)
        if self._stop():
            raise KeyboardInterrupt


def chosen(stop: Callable[[], bool] = lambda: False) -> Progress:
    """Return a bar if a person is watching, else plain lines; either ends the run once `stop` says so."""
    return Stoppable(Live() if sys.stderr.isatty() else Plain(), stop)


def describe(row: Mapping[str, Any], rounds: int) -> str:
    """Return one line about a row of metrics."""
    return f"round {row['round']}/{rounds}  {_figures(row)}"


def _figures(row: Mapping[str, Any]) -> str:
    accuracy = "" if row.get("accuracy") is None else f"  accuracy {row['accuracy']:.3f}"
    return f"{clock_time(row['virtual_seconds'])}  heard {row['heard']}/{row['asked']}{accuracy}"


def clock_time(seconds: float) -> str:
    """Return virtual seconds as a person reads them: "1d 02:03:04"."""
    whole = int(seconds)
    days, rest = divmod(whole, 86_400)
    text = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}d {text}" if days else text
