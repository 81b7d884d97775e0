"""Limits of how many events there may be in a span of virtual time; behaviours that pass them are refused."""

from __future__ import annotations

from fedactors.clock.device_columns import MOST_WINDOWS_PER_SECOND
from fedactors.errors import ScenarioError
from fedactors.plan import SECOND, Time
from fedactors.scenario.units import show_duration

_AT_ONCE = 1_000  # events at one instant, for each device, and for a hundred others
_IN_A_SECOND = 5_000  # events between two Plans in a second of virtual time, for each device, and for twenty others
_AT_FIRST = 10  # switches of each device that need no time


class EventLimits:
    """Counts the events of a world with so many `devices` that are simulated, of which some are `behaving`."""

    def __init__(self, devices: int, behaving: int) -> None:
        self._devices = devices
        self._behaving = behaving
        self._instant: Time = -1
        self._second: Time = -1  # when the second began that is counted now
        self._at_once = 0
        self._in_second = 0
        self._switches = 0

    def count(self, now: Time) -> None:
        """Count an event. Raises ScenarioError if there were too many."""
        if now != self._instant:
            self._instant = now
            self._at_once = 0
        if now >= self._second + SECOND:
            self.start_over(now)
        self._at_once += 1
        self._in_second += 1
        if self._at_once > _AT_ONCE * (100 + self._devices):
            raise ScenarioError(f"population: a behaviour goes on for ever at {now} ns (accepted: timeouts above 0)")
        if self._behaving and self._in_second > (most := _IN_A_SECOND * (20 + self._devices)):
            raise ScenarioError(
                f"population: more than {most:,} events in less than a second of virtual time, at"
                f" {show_duration(now)} (accepted: behaviours that wait for longer; is the unit of their times right?)"
            )

    def start_over(self, now: Time) -> None:
        """Count the events of a second from `now` on; those of a round that has ended do not count."""
        self._second = now
        self._in_second = 0

    def switch(self, now: Time) -> None:
        """Count that a behaviour let its device come or go. Raises ScenarioError if they did too often."""
        self._switches += 1
        each = _AT_FIRST + 2 * MOST_WINDOWS_PER_SECOND * now // SECOND
        if self._switches > 1_000 + self._behaving * each:
            raise ScenarioError(
                f"population: behaviours let their devices come and go {self._switches:,} times by"
                f" {show_duration(now)} (accepted: up to {MOST_WINDOWS_PER_SECOND} windows in a second of virtual time"
                " for each device; is the unit of their times right?)"
            )
