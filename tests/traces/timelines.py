"""Hypothesis strategies of timelines, and the shape in which tests compare them."""

import sys

from hypothesis import strategies as st

from fedactors.plan import NEVER
from fedactors.traces.timeline import Timeline, build

# The csv module of Python 3.10 refuses NUL; nobody names a phone so.
# Blanks around a name do not count, so that no name has them.
NAMES = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=0 if sys.version_info >= (3, 11) else 1)).map(
    str.strip
)
TIMES = st.one_of(st.integers(0, 20), st.integers(0, NEVER))


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Any timeline: devices without windows, seen for an instant, of any name."""
    devices = []
    for name in draw(st.lists(NAMES, unique=True, max_size=6)):
        times = sorted(draw(st.lists(TIMES, unique=True, max_size=12)))
        windows = list(zip(times[::2], times[1::2], strict=False))
        ends = [time for window in windows for time in window]
        first = draw(st.integers(0, min(ends, default=NEVER)))
        last = draw(st.integers(max([first, *ends]), NEVER))
        devices.append((name, windows, first, last))
    return build(devices)


def as_dict(timeline: Timeline) -> dict[str, list[tuple[int, int]]]:
    """Return {device: its windows}."""
    return {name: list(timeline.windows(row)) for row, name in enumerate(timeline.names)}


def repaired(timeline: Timeline) -> dict[str, int]:
    """Return {kind of repair: how often}."""
    return {repair.kind: repair.count for repair in timeline.repairs}
