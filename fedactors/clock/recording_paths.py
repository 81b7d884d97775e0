"""Where the recordings that a scenario names are found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel

from fedactors.errors import TraceError, shortened
from fedactors.home import trace_command, trace_roots
from fedactors.scenario.population import GroupOptions
from fedactors.scenario.recordings import DeviceRecording, Places, RateRecording
from fedactors.scenario.trace_options import Trace


def look_for_recordings(groups: Iterable[GroupOptions], folder: Path) -> None:
    """Look for the files of all recordings of groups, before any is read. Raises TraceError if one is missing."""
    for group in groups:
        for path in recordings_of(group):
            locate_all(path, folder)


def recordings_of(options: BaseModel) -> Iterator[str]:
    """Yield the path of each recording in options, in the order of their keys."""
    if isinstance(options, Trace | RateRecording | DeviceRecording | Places):
        yield str(options.path)
    for name in type(options).model_fields:
        value = getattr(options, name)
        if isinstance(value, BaseModel):
            yield from recordings_of(value)


def locate(path: str, folder: Path) -> Path:
    """Return the file a scenario means: relative to its folder, to the one FEDACTORS_TRACES names, or to fetched ones.

    Raises TraceError if it is in none of them.
    """
    places = [base / path for base in _folders(folder)]
    for place in places:
        if place.exists():
            return place
    raise TraceError(f"no trace at {' or '.join(shortened(str(place), 1000) for place in places)}{_hint(path)}")


def locate_all(pattern: str, folder: Path) -> list[Path]:
    """Return the files of a pattern such as `bus/*.log`, in the order of their names; or the one file it names.

    Raises TraceError if there is none.
    """
    if not any(mark in pattern for mark in "*?["):
        return [locate(pattern, folder)]
    for base in _folders(folder):
        root, parts = (Path("/"), pattern.lstrip("/")) if Path(pattern).is_absolute() else (base, pattern)
        if found := sorted(path for path in root.glob(parts) if path.is_file()):
            return found
    places = " or ".join(map(str, _folders(folder)))
    raise TraceError(f"no trace is called {shortened(pattern)} in {places}{_hint(pattern)}")


def _folders(folder: Path) -> list[Path]:
    return [folder, *trace_roots()]


def _hint(path: str) -> str:
    """Return how a recording that is not there is got at."""
    first, *below = Path(path).parts or ("",)
    setting = f"set FEDACTORS_TRACES to the folder that holds {first}{'/' * bool(below)}"
    if command := trace_command(path):
        return f" (fetch it: {command}, or {setting})"
    if os.environ.get("FEDACTORS_TRACES") or Path(path).is_absolute():
        return ""
    return f" (or {setting})"
