"""The formats there are: one line each. A file is recognised by its content, never by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fedactors import registry
from fedactors.errors import ScenarioError, TraceError, suggestion
from fedactors.traces.device_tables import DeviceTable, Matrix
from fedactors.traces.formats import (
    ai_benchmark,
    cooked,
    fedscale,
    fedscale_devices,
    flash,
    fta,
    hsdpa,
    irish,
    latency,
    mahimahi,
    native,
    native_parquet,
    native_sheets,
    planetlab,
    spot,
)
from fedactors.traces.nearest import nearest
from fedactors.traces.parsed_recordings import ParsedRecordings
from fedactors.traces.series import Series
from fedactors.traces.source import RecordingFile, RepairLog, load, shown
from fedactors.traces.timeline import Timeline

_PARSED = ParsedRecordings()
Recording = Timeline | Series | DeviceTable | Matrix
Kind = TypeVar("Kind", Timeline, Series, DeviceTable, Matrix)


class Reader(Protocol):
    """What a module offers that reads one format."""

    def looks_like(self, data: bytes) -> bool:
        """Whether `data` is of this format."""

    @property
    def read(self) -> Callable[..., Any]:
        """Read (source, repair log), and of a ruled format the rule; raises TraceError if the file is damaged."""


@dataclass(frozen=True)
class Format:
    """One kind of file: its name, what it gives, and the module that reads it."""

    name: str
    gives: str
    description: str
    reader: Reader
    ruled: bool = False  # whether the scenario says what counts as available


AVAILABILITY = "availability"
BANDWIDTH = "bandwidth"
PROCESSOR = "processor share"
DEVICES = "devices"
LATENCY = "latency"
RATES = "rates over time"

# In this order they are tried; the looser ones come last.
_FORMATS = (
    Format("csv", AVAILABILITY, "our own intervals, CSV", native),
    Format("rates", RATES, "our own rates over time, CSV or Parquet", native_sheets.RATES),
    Format("devices", DEVICES, "our own table of devices, CSV or Parquet", native_sheets.DEVICES),
    Format("latencies", LATENCY, "our own latencies between places, CSV or Parquet", native_sheets.LATENCIES),
    Format("parquet", AVAILABILITY, "our own intervals, Parquet", native_parquet),
    Format("flash", AVAILABILITY, "FLASH: event logs of smartphones", flash, ruled=True),
    Format("fedscale", AVAILABILITY, "FedScale: client_behave_trace", fedscale),
    Format("fta", AVAILABILITY, "Failure Trace Archive: event_trace.tab", fta),
    Format("spot", AVAILABILITY, "SkyPilot: spot instances", spot),
    Format("hsdpa", BANDWIDTH, "Norwegian HSDPA logs, downlink", hsdpa),
    Format("irish-5g", BANDWIDTH, "Irish 5G logs, down- and uplink", irish),
    Format("cooked", BANDWIDTH, "Pensieve: seconds and Mbit/s", cooked),
    Format("fedscale-devices", DEVICES, "FedScale and FedFetch: client_device_capacity", fedscale_devices),
    Format("ai-benchmark", DEVICES, "FLASH: scores of phones, and their names", ai_benchmark),
    Format("latency", LATENCY, "round-trip times between places, ms", latency),
    Format("planetlab", PROCESSOR, "PlanetLab: CPU use of a day", planetlab),
    Format("mahimahi", BANDWIDTH, "Mahimahi: packets in ms", mahimahi),
)
BUILT_IN = frozenset(found.name for found in _FORMATS)
_TYPES = {
    AVAILABILITY: Timeline,
    BANDWIDTH: Series,
    PROCESSOR: Series,
    RATES: Series,
    DEVICES: DeviceTable,
    LATENCY: Matrix,
}


def formats() -> tuple[Format, ...]:
    """Return every format there is: those of installed packages (entry points `fedactors.formats`), then ours.

    Raises ScenarioError if a plugin is none.
    """
    return (*_added(), *_FORMATS)


def _added() -> Iterable[Format]:
    """Yield the formats of the scenario's own plugins, then those of installed packages."""
    added = [(found, f'format "{name}" of a plugin') for name, found in registry.own("formats").items()]
    points = registry.plugins("formats")
    added += [(registry.load("formats", point), registry.called("formats", point)) for point in points]
    for found, who in added:
        if not isinstance(found, Format):
            accepted = "an instance of fedactors.traces.format_registry.Format"
            raise ScenarioError(f"{who} is a {type(found).__name__} (accepted: {accepted})")
        able = [callable(getattr(found.reader, method, None)) for method in ("looks_like", "read")]
        if found.gives not in _TYPES or not all(able):
            accepted = f"gives: {', '.join(_TYPES)}; a reader with looks_like and read"
            raise ScenarioError(f"{who} is not a whole format (accepted: {accepted})")
        if found.name in BUILT_IN:
            raise ScenarioError(f'{who} is called "{found.name}", like one of ours (accepted: a name of its own)')
        yield found


def read(path: str | Path, format: str | None = None, when: str | None = None, strict: bool = False) -> Timeline:
    """Read the availability recorded in the file at `path`.

    `format` is recognised from the content if not given. `when` is the rule of availability for formats that
    record states, such as "charging & wifi & locked". With `strict` every repair is an error.

    Raises TraceError if the file is missing, damaged or of no such format.
    """
    return _read(path, Timeline, format, when, strict)


def read_series(path: str | Path, format: str | None = None, strict: bool = False) -> Series:
    """Read a bandwidth or processor share over time, like `read`."""
    return _read(path, Series, format, None, strict)


def read_table(path: str | Path, format: str | None = None, strict: bool = False) -> DeviceTable:
    """Read a table of devices, like `read`."""
    return _read(path, DeviceTable, format, None, strict)


def read_latency(path: str | Path, format: str | None = None, strict: bool = False) -> Matrix:
    """Read the latencies between places, like `read`."""
    return _read(path, Matrix, format, None, strict)


def format_of(path: str | Path) -> Format:
    """Return the format of the file at `path`, by its content. Raises TraceError if it is of no known format."""
    return _choose(load(path), None)


def read_any(path: str | Path, format: str | None = None, when: str | None = None, strict: bool = False) -> Recording:
    """Read whatever the file at `path` holds, like `read`."""
    source = load(path)
    return _parse(source, _choose(source, format), when, strict)


def _read(path: str | Path, wanted: type[Kind], name: str | None, when: str | None, strict: bool) -> Kind:
    source = load(path)
    kind = _choose(source, name)
    if _TYPES[kind.gives] is not wanted:
        fitting = _listed(f for f in formats() if _TYPES[f.gives] is wanted)
        raise source.error("", f"a {kind.name} file, which gives {kind.gives}", fitting)
    if kind in _FORMATS:
        result = _PARSED.get(source, (kind.name, when, strict), lambda: _parse(source, kind, when, strict))
    else:
        result = _parse(source, kind, when, strict)
    if not isinstance(result, wanted):
        raise TypeError(f"the reader of {kind.name} returned a {type(result).__name__}")
    return result


def _parse(source: RecordingFile, kind: Format, when: str | None, strict: bool) -> Recording:
    if when is not None and not kind.ruled:
        problem = f'a rule "when: {when}" for a {kind.name} file'
        raise source.error("", problem, f"a rule only for {_listed(f for f in formats() if f.ruled)}")
    repair_log = RepairLog(source, strict)
    try:
        result: Recording = kind.reader.read(source, repair_log, *([when] if kind.ruled else []))
    except TraceError as error:
        if str(error).startswith(f"{source.path}: "):
            raise
        raise source.error("", str(error)) from error  # from a type that does not know its file
    _check_names(result.names, source)
    return result


def _check_names(names: tuple[str, ...], source: RecordingFile) -> None:
    """Refuse names that differ in blanks only: they are one device, or nobody can tell them apart."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.strip(), name)
        if other is not name:
            accepted = "names that differ in more than blanks around them"
            raise source.error("", f"two names, {shown(other)} and {shown(name)}", accepted)


def _choose(source: RecordingFile, wanted: str | None) -> Format:
    """Return the format of that name, or the one that recognises the content."""
    for kind in formats():
        if wanted == kind.name or (wanted is None and kind.reader.looks_like(source.data)):
            return kind
    if wanted is None:
        hint = nearest(source, {kind.name: kind.reader.read for kind in formats() if not kind.ruled})
        raise source.error("", f"a file of no known format{hint}", _listed(formats()))
    raise source.error("", f'format "{wanted}"{suggestion(wanted, (kind.name for kind in formats()))}')


def _listed(kinds: Iterable[Format]) -> str:
    return ", ".join(kind.name for kind in kinds)
