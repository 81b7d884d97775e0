"""Why runs end: by themselves, or because something stopped them; the words that `ended_because` of a summary has."""

from __future__ import annotations

import re

from fedactors.errors import FleetError
from fedactors.fleet.base import Fault

INTERRUPTED = "interrupted"
DIVERGED = "diverged"  # begins what is said of a run whose losses grew too far; of exceptions, their name does


def reason(error: BaseException) -> str:
    """Return why a run ended that was stopped."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def further_error(first: BaseException, further: Exception) -> str:
    """Return what a note adds about an error that followed the `first` one; nothing if that one says it already."""
    if isinstance(further, OSError | Fault | FleetError):
        return "" if str(further) in str(first) else f": {further}"
    return f": {type(further).__name__}: {further}"


def cut_short(rounds: int) -> str:
    """Return why a run ended that was to stop after some rounds."""
    return f"stopped after {rounds} rounds, as asked"


def is_complete(ended: str) -> bool:
    """Say whether a run that ended so came to its end, and would again."""
    return ended != INTERRUPTED and not re.match(rf"stopped after \d+ rounds|(?!{DIVERGED}: )\w+: ", ended)
