"""Units of time, in nanoseconds. Light: the command line declares its options with it."""

from __future__ import annotations

Time = int  # virtual time in nanoseconds since the scenario's start
SECOND: Time = 1_000_000_000
HOUR: Time = 3600 * SECOND
DAY: Time = 24 * HOUR
DURATIONS: dict[str, Time] = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "min": 60 * SECOND,
    "h": HOUR,
    "d": DAY,
}  # units of time as users write them, ns
