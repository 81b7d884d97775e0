"""The state of one device over time: whether it is there, whether it is on, and what it is doing."""

from __future__ import annotations

from collections.abc import Callable

import simpy

from fedactors.clock.availability import Availability
from fedactors.clock.events.event_time import EventTime
from fedactors.clock.events.seen_windows import SeenWindows
from fedactors.clock.virtual_time import Waits
from fedactors.plan import NEVER, Phase, Time


class EventDevice:
    """A device that is simulated event by event.

    It is on while its recorded windows, its behaviour (if it has one) and its stay in the population all say so.
    Changes take effect in the phase of their instant: a step that ends when the device goes off has been done.

    One that behaves is followed from the beginning on. What else it may do stands in its recording, so any other one is
    followed only while it has a trip: the windows before are not played one by one.
    """

    def __init__(self, world: EventTime, client: int, stay: tuple[Time, Time], *, behaves: bool) -> None:
        self.world = world
        self.client = client
        self.arrive, self.depart = stay
        self.behaves = behaves  # a behaviour drives it, too, which nobody foresees
        self.recorded = False  # on by its recorded windows
        self.willing = True  # on by its behaviour
        self.here = self.arrive <= 0
        self.gone = False
        self.line: Callable[[], simpy.Resource | None] = lambda: None  # what its transfers have to hold, if anything
        self.stage = "idle"  # of its trip: idle, download, compute or upload
        self.switched = simpy.Event(world.env)  # triggers at the next change of what is above
        self._sources = 0  # processes that may still change it
        self._followed: list[simpy.Process] = []  # those of its trip, if it is followed only then
        self.seen = SeenWindows()  # when it was on, if it behaves

    @property
    def on(self) -> bool:
        """Whether the device can be reached, and advances with its trip."""
        return self.recorded and self.willing and self.here and not self.gone

    @property
    def unforeseen(self) -> bool:
        """Whether anything may still change the device."""
        return self._sources > 0

    def follow(self, life: Waits) -> None:
        """Let a process drive the device from now on."""
        self._sources += 1
        process = self.world.env.process(self._until_its_end(life))
        if self.behaves:
            self.world.note_source(ends=False)
        else:
            self._followed.append(process)

    def begin_following(self, availability: Availability) -> None:
        """Look up whether the device is on now, and follow its recording from now on."""
        now = self.world.now
        self.recorded = availability.is_on(self.client, now)
        self.here, self.gone = self.arrive <= now, self.depart <= now
        self.follow(self.stay())
        self.follow(self.windows(availability))

    def end_following(self) -> None:
        """Follow its recording no more."""
        for process in self._followed:
            if process.is_alive:
                process.interrupt()
        self._followed.clear()

    def _until_its_end(self, life: Waits) -> Waits:
        try:
            yield from life
            yield self.world.at(self.world.now, Phase.ON)  # a last change of its state at this instant comes first
        except simpy.Interrupt:  # its trip is over
            self._sources -= 1
            return
        self._sources -= 1
        self.changed()
        if self.behaves:
            self.world.note_source(ends=True)

    def windows(self, availability: Availability) -> Waits:
        """Play the recorded windows from now on; one that begins where another ends goes on with it."""
        now = self.world.now
        end = now if self.recorded else -1
        for on, off in availability.spans(self.client, now):
            if on != end:
                yield from self._recorded_off(end)
                yield from self._at(on, Phase.ON)
                self.recorded = True
                self.changed()
            end = off
            if end >= NEVER:
                return
            yield from self._at(end - 1, Phase.DISPATCH)  # the next window is looked at only when it may be near
        yield from self._recorded_off(end)

    def _recorded_off(self, time: Time) -> Waits:
        if time >= 0:
            yield from self._at(time, Phase.OFF)
            self.recorded = False
            self.changed()

    def stay(self) -> Waits:
        """Play the arrival and the departure that are known beforehand, and not over yet."""
        if not self.here and self.arrive < NEVER:
            yield from self._at(self.arrive, Phase.ARRIVE)
            self.here = True
            self.changed()
        if not self.gone and self.depart < NEVER:
            yield from self._at(self.depart, Phase.DEPART)
            self.gone = True
            self.changed()

    def set(self, what: str, *, value: bool) -> None:
        """Change what a behaviour may change: "willing", "here" or "gone"."""
        if getattr(self, what) == value:
            return
        if what == "willing":
            self.world.note_switch()
        if what == "here" and not self.here:
            self.arrive = self.world.now
            self.world.note_move(self.client, arrives=True)
        if what == "gone" and self.here and not self.gone:
            self.depart = self.world.now
            self.world.note_move(self.client, arrives=False)
        setattr(self, what, value)
        self.changed()

    def set_stage(self, stage: str) -> None:
        """Note what the device is doing now."""
        if stage != self.stage:
            self.stage = stage
            self._wake()

    def changed(self) -> None:
        """Report that the device has come, gone, arrived or departed, to the server and to its trip."""
        if self.behaves:
            self.watch()
        self._wake()
        self.world.note(self.client, on=self.on, here=self.here and not self.gone)

    def watch(self) -> None:
        """Note whether the device is on now."""
        self.seen.note(self.world.now, on=self.on)

    def _wake(self) -> None:
        event, self.switched = self.switched, simpy.Event(self.world.env)
        event.succeed()

    def _at(self, time: Time, phase: Phase) -> Waits:
        yield self.world.at(max(time, self.world.now), phase)
