r"""FLASH's smartphone state traces: one JSON object, one text of events per phone.

    {"0": {"guid": "0", "messages": "2020-02-02 09:00:12 \twifi\n…", "model": "CPH1909"}, …}

Source: C. Yang et al., "Characterizing Impacts of Heterogeneity in Federated Learning upon Large-Scale
Smartphone Data", WWW 2021; github.com/PKU-Chengxu/FLASH, `data/state_traces.json`. Where this reader departs
from FLASH's own:

* The pair `screen_on`, `2G` that FLASH's authors added a whole number of days after each phone's first event
  (and at the recording's real end) is no observation: it is left out and counted. A phone is seen from its
  first to its last real event, and a window open at the end closes there instead of being lost.
* Stamps are wall-clock times without a zone and stay so: they never pass through the host's time zone.
* What a phone has not reported is unknown, not false (see `rule`).
* Each phone keeps its own dates; they are not merged into one day.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fedactors.traces.columns import DAY_SECONDS, assemble, from_midnight, windows
from fedactors.traces.formats.availability_rule import Fact, Phone, parse
from fedactors.traces.source import RecordingFile, RepairLog, device, shown
from fedactors.traces.timeline import Timeline

DEFAULT_RULE = "charging & wifi & locked"  # FLASH's own

_LINE = re.compile(r"(\d{4}-\d\d-\d\d) ([01]\d|2[0-3]):([0-5]\d):([0-5]\d)( *)\t *(\S+)\s*", re.ASCII)
_BATTERY = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)%", re.ASCII)
_ACCEPTED = "YYYY-MM-DD HH:MM:SS, TAB, event"
_SWITCHES = ("charging", "screen", "locked")
_EVENTS: dict[str, tuple[str, bool | str]] = {
    "battery_charged_on": ("charging", True),
    "battery_charged_off": ("charging", False),
    "screen_on": ("screen", True),
    "screen_off": ("screen", False),
    "screen_lock": ("locked", True),
    "screen_unlock": ("locked", False),
    **{name: ("network", name) for name in ("wifi", "2g", "3g", "4g", "5g", "unknown")},
}


class Event(NamedTuple):
    """One line of a phone's log: at `second` (of the phone's calendar) `fact` became `value`."""

    second: int
    line: int
    spaced: bool  # recorded lines have a space before the TAB, added ones have not
    fact: str
    value: bool | str | float


@dataclass(frozen=True)
class _Window:
    row: int
    on: int  # s
    off: int  # s
    line: int  # where it closed


def looks_like(data: bytes) -> bool:
    """Whether `data` is a JSON object that contains messages."""
    return data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" and b'"messages"' in data


def read(source: RecordingFile, repair_log: RepairLog, when: str | None = None) -> Timeline:
    """Read the phones and the windows in which rule `when` holds; t = 0 is midnight of the earliest day.

    Raises TraceError if the file is damaged, or the rule is not understood.
    """
    holds = parse(DEFAULT_RULE if when is None else when).holds
    names: list[str] = []
    first: list[int] = []
    last: list[int] = []
    found: list[_Window] = []
    for name, text in _phones(source):
        events = observed(_events(name, text, source), name, repair_log)
        _note_contradictions(events, name, repair_log)
        if not events:
            repair_log.note("device without an event left out", device(name))
            continue
        found.extend(_windows(len(names), events, holds))
        names.append(name)
        first.append(events[0].second)
        last.append(events[-1].second)
    if not names:
        raise source.error("", "no device with an event", "a FLASH state trace")
    on, off, begin, end = from_midnight(([w.on for w in found], [w.off for w in found], first, last), repair_log)

    def place(k: int) -> str:
        return device(names[found[k].row], found[k].line)

    return assemble(names, windows([w.row for w in found], on, off), (begin, end), repair_log, place)


def observed(events: list[Event], name: str, repair_log: RepairLog) -> list[Event]:
    """Return `events` in order of time, without the pairs that FLASH's authors added at the end."""
    for before, after in itertools.pairwise(events):
        if after.second < before.second:
            same_day = after.second // DAY_SECONDS == before.second // DAY_SECONDS
            show = _clock if same_day else _stamp
            detail = f"{show(after.second)} after {show(before.second)}"
            repair_log.note("time runs backwards", device(name, after.line), detail)
    kept = sorted(events, key=lambda event: event.second)  # stable: events of one second stay in file order
    while len(kept) > 2 and _is_added(kept[-2:], kept[0]):
        repair_log.note("added screen_on + 2G pair left out", device(name, kept[-2].line))
        del kept[-2:]
    return kept


def _note_contradictions(events: list[Event], name: str, repair_log: RepairLog) -> None:
    """Count the events that contradict an earlier one of the same second; the last counts."""
    said: dict[str, bool | str | float] = {}
    second = -1
    for event in events:
        if event.second != second:
            second = event.second
            said = {}
        if event.fact in _SWITCHES and said.get(event.fact, event.value) != event.value:
            repair_log.note("contradicting events in one second, the last counts", device(name, event.line))
        said[event.fact] = event.value


def _is_added(pair: list[Event], start: Event) -> bool:
    """Whether the last two events are FLASH's: after whole days, or separated unlike recorded lines."""
    screen, network = pair
    reported = (screen.fact, screen.value, network.value)
    if reported != ("screen", True, "2g") or screen.second != network.second:
        return False
    days, rest = divmod(screen.second - start.second, DAY_SECONDS)
    return (days > 0 and rest == 0) or (start.spaced and not screen.spaced and not network.spaced)


def _windows(row: int, events: list[Event], holds: Fact) -> Iterator[_Window]:
    """Yield the windows of one phone as recorded: events of one second can make them empty or touching."""
    phone, since = Phone(), -1
    for event in events:
        setattr(phone, event.fact, event.value)
        if holds(phone):
            since = event.second if since < 0 else since
        elif since >= 0:
            yield _Window(row, since, event.second, event.line)
            since = -1
    if since >= 0:
        yield _Window(row, since, events[-1].second, events[-1].line)


def _events(name: str, text: str, source: RecordingFile) -> list[Event]:
    """Parse one phone's lines. Raises TraceError at the first that is not understood."""
    events: list[Event] = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := _LINE.fullmatch(line):
            day, hour, minute, second, space, word = match.groups()
            try:
                stamp = _day(day) + 3600 * int(hour) + 60 * int(minute) + int(second)
                fact, value = _meaning(word.lower())
            except ValueError as error:
                raise source.error(device(name, number), f"{error} {shown(line)}", _ACCEPTED) from error
            events.append(Event(stamp, number, bool(space), fact, value))
        elif line.strip():
            raise source.error(device(name, number), f"a line that is no event: {shown(line)}", _ACCEPTED)
    return events


@functools.lru_cache(maxsize=4096)
def _day(text: str) -> int:
    """Return the seconds from 0001-01-01 to the midnight that begins the day `text`."""
    return datetime.date.fromisoformat(text).toordinal() * DAY_SECONDS


@functools.lru_cache(maxsize=4096)
def _meaning(word: str) -> tuple[str, bool | str | float]:
    """Return the fact and its value that an event reports. Raises ValueError if the word is none."""
    if word in _EVENTS:
        return _EVENTS[word]
    match = _BATTERY.fullmatch(word)
    if not match or float(match[1]) > 100:
        raise ValueError("unknown event in")
    return "battery", float(match[1])


def _clock(second: int) -> str:
    return f"{second % DAY_SECONDS // 3600:02}:{second % 3600 // 60:02}:{second % 60:02}"


def _stamp(second: int) -> str:
    return f"{datetime.date.fromordinal(second // DAY_SECONDS)} {_clock(second)}"


def _phones(source: RecordingFile) -> Iterator[tuple[str, str]]:
    """Yield (name, messages) of each phone."""
    phones = source.json()
    if not isinstance(phones, dict):
        raise source.error("", "no JSON object of phones", "a FLASH state trace")
    for name, record in phones.items():
        messages = record.get("messages") if isinstance(record, dict) else None
        if isinstance(messages, list) and all(isinstance(part, str) for part in messages):
            messages = "".join(messages)  # one public variant cuts the text into a list
        if not isinstance(messages, str):
            raise source.error(device(name), "no text of messages", '{"messages": "…"}')
        yield name, messages
