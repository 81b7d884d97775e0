"""The formats there are: one line each. A file is recognised by its content, never by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fedactors.errors import suggestion
from fedactors.traces import fedscale, flash, fta, native, native_parquet, spot
from fedactors.traces.source import Mender, Source, load
from fedactors.traces.timeline import Timeline


class Reader(Protocol):
    """What a module offers that reads one format."""

    def looks_like(self, data: bytes) -> bool:
        """Whether `data` is of this format."""

    @property
    def read(self) -> Callable[..., Any]:
        """Read (source, mender), and of a ruled format the rule; raises TraceError if the file is damaged."""


@dataclass(frozen=True)
class Format:
    """One kind of file: its name, what it gives, and the module that reads it."""

    name: str
    gives: str
    description: str
    reader: Reader
    ruled: bool = False  # whether the scenario says what counts as available


AVAILABILITY = "availability"

_FORMATS = (
    Format("csv", AVAILABILITY, "our own intervals, CSV", native),
    Format("parquet", AVAILABILITY, "our own intervals, Parquet", native_parquet),
    Format("flash", AVAILABILITY, "FLASH: event logs of smartphones", flash, ruled=True),
    Format("fedscale", AVAILABILITY, "FedScale: client_behave_trace", fedscale),
    Format("fta", AVAILABILITY, "Failure Trace Archive: event_trace.tab", fta),
    Format("spot", AVAILABILITY, "SkyPilot: spot instances", spot),
)


def formats() -> tuple[Format, ...]:
    """Return every format there is."""
    return _FORMATS


def read(
    path: str | Path,
    format: str | None = None,
    when: str | None = None,
    strict: bool = False,
) -> Timeline:
    """Read the availability recorded in the file at `path`.

    `format` is recognised from the content if not given. `when` is the rule of availability for formats that
    record states, such as "charging & wifi & locked". With `strict` every repair is an error.

    Raises TraceError if the file is missing, damaged or of no known format.
    """
    source = load(path)
    kind = _choose(source, format)
    if when is not None and not kind.ruled:
        problem = f'a rule "when: {when}" for a {kind.name} file'
        raise source.error("", problem, f"a rule only for {_listed(f for f in _FORMATS if f.ruled)}")
    mender = Mender(source, strict)
    timeline: Timeline = kind.reader.read(source, mender, *([when] if kind.ruled else []))
    return timeline


def _choose(source: Source, wanted: str | None) -> Format:
    """Return the format of that name, or the one that recognises the content."""
    for kind in _FORMATS:
        if wanted == kind.name or (wanted is None and kind.reader.looks_like(source.data)):
            return kind
    if wanted is None:
        raise source.error("", "a file of no known format", _listed(_FORMATS))
    raise source.error("", f'format "{wanted}"{suggestion(wanted, (kind.name for kind in _FORMATS))}')


def _listed(kinds: Iterable[Format]) -> str:
    return ", ".join(kind.name for kind in kinds)
