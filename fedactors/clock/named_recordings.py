"""The recordings that a scenario names: looked for before anything is read or imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel

from fedactors.clock.recording_paths import locate_all
from fedactors.scenario.population import GroupOptions
from fedactors.scenario.recordings import DeviceRecording, Places, RateRecording
from fedactors.scenario.trace_options import Trace


def look_for_recordings(groups: Iterable[GroupOptions], folder: Path) -> None:
    """Look for the files of all recordings of groups. Raises TraceError if one is missing."""
    for group in groups:
        for path in _paths(group):
            locate_all(path, folder)


def _paths(options: BaseModel) -> Iterator[str]:
    """Yield the path of each recording in options, in the order of their keys."""
    if isinstance(options, Trace | RateRecording | DeviceRecording | Places):
        yield str(options.path)
    for name in type(options).model_fields:
        value = getattr(options, name)
        if isinstance(value, BaseModel):
            yield from _paths(value)
