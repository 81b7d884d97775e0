"""Why runs end: by themselves, or because something stopped them; `ended` and `ended_because` of a summary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fedactors.errors import FleetError
from fedactors.fleet.base import Fault
from fedactors.plan import Ending, Ends

_INTERRUPTED = "interrupted"
_NOT_COMPLETE = ("stopped", "interrupted", "error")
_OF_WORDS = {  # of summaries without a kind
    re.escape(Ends.TIME): "time",
    "stopped after \\d+ rounds": "stopped",
    _INTERRUPTED: "interrupted",
    "diverged: ": "diverged",
    "\\w+: ": "error",
}


def reason(error: BaseException) -> Ending:
    """Return why a run ended that was stopped."""
    if isinstance(error, KeyboardInterrupt):
        return Ending(_INTERRUPTED, "interrupted")
    return Ending(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}", "error")


def further_error(first: BaseException, further: Exception) -> str:
    """Return what a note adds about an error that followed the `first` one; nothing if that one says it already."""
    if isinstance(further, OSError | Fault | FleetError):
        return "" if str(further) in str(first) else f": {further}"
    return f": {type(further).__name__}: {further}"


def cut_short(rounds: int) -> Ending:
    """Return why a run ended that was to stop after some rounds."""
    return Ending(f"stopped after {rounds} rounds, as asked", "stopped")


def diverging(what: str) -> Ending:
    """Return why a run ended whose losses grew too far, or whose updates were no numbers."""
    return Ending(f"diverged: {what}", "diverged")


def kind_of(summary: Mapping[str, Any]) -> str:
    """Return how a run with this summary ended, as an `EndKind`; without a summary it was interrupted.

    Summaries of earlier versions have the sentence alone; of those that ended by themselves, only two kinds are told
    apart: "time", and "done" for all others.
    """
    if "ended" in summary:
        return str(summary["ended"])
    words = str(summary.get("ended_because", _INTERRUPTED))
    return next((kind for pattern, kind in _OF_WORDS.items() if re.match(pattern, words)), "done")


def is_complete(summary: Mapping[str, Any]) -> bool:
    """Say whether a run with this summary came to its end, and would again."""
    return kind_of(summary) not in _NOT_COMPLETE
