"""Virtual time for devices and trips that are simulated event by event."""

from __future__ import annotations

from abc import ABC, abstractmethod

import simpy

from fedactors.clock.virtual_time import VirtualTime, Waits
from fedactors.plan import NEVER, Phase, Time


class EventTime(VirtualTime, ABC):
    """Virtual time with devices whose changes are reported to it."""

    def until_first(self, time: Time, *others: simpy.Event) -> Waits:
        """Wait for the end of a stage at `time` (NEVER: it has none), or for one of the `others` before it."""
        timer = [self.at(time, Phase.FINISH)] if time < NEVER else []
        yield simpy.AnyOf(self.env, [*timer, *others])

    @abstractmethod
    def note(self, client: int, *, on: bool, here: bool) -> None:
        """Note whether a device can be reached now, and whether it belongs to the population."""

    @abstractmethod
    def note_move(self, client: int, *, arrives: bool) -> None:
        """Note that a behaviour lets its device arrive or depart now."""

    @abstractmethod
    def note_switch(self) -> None:
        """Note that a behaviour lets its device come or go now. Raises ScenarioError if that happens too often."""

    @abstractmethod
    def note_source(self, *, ends: bool) -> None:
        """Note that a process that drives a device which behaves has begun, or ended."""


def close(event: simpy.Event) -> None:
    """Trigger an event, if that has not happened."""
    if not event.triggered:
        event.succeed()
