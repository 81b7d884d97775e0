"""The formats there are: one line each. A file is recognised by its content, never by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from fedactors.errors import TraceError, suggestion
from fedactors.traces import flash, native, native_parquet
from fedactors.traces.source import Mender, Source, load
from fedactors.traces.timeline import Timeline


@dataclass(frozen=True)
class Format:
    """One kind of file: its name, what it gives, how to recognise and how to read it."""

    name: str
    gives: str
    description: str
    recognise: Callable[[bytes], bool]
    read: Callable[..., Timeline]  # (source, mender), and if `ruled` the rule
    ruled: bool = False  # whether what counts as available is asked of the scenario


AVAILABILITY = "availability"

_FORMATS = (
    Format("csv", AVAILABILITY, "our own intervals, CSV", native.is_csv, native.read_csv),
    Format(
        "parquet", AVAILABILITY, "our own intervals, Parquet", native_parquet.is_parquet, native_parquet.read
    ),
    Format(
        "flash", AVAILABILITY, "FLASH smartphone state traces, JSON", flash.looks_like, flash.read, ruled=True
    ),
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
    return kind.read(source, mender, when) if kind.ruled else kind.read(source, mender)


def _choose(source: Source, wanted: str | None) -> Format:
    """Return the format of that name, or the one that recognises the content."""
    for kind in _FORMATS:
        if wanted == kind.name or (wanted is None and kind.recognise(source.data)):
            return kind
    if wanted is None:
        raise source.error("", "a file of no known format", _listed(_FORMATS))
    raise TraceError(f'{source.path}: format "{wanted}"{suggestion(wanted, (f.name for f in _FORMATS))}')


def _listed(kinds: Iterable[Format]) -> str:
    return ", ".join(kind.name for kind in kinds)
