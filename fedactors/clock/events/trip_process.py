"""One trip as a SimPy process: the latency and the download, one local step after another, the latency and the upload.

It advances only while its device is on, and what interrupts it is an event: the device goes off or departs, the round
closes. Progress of a stage is an exact integral (bytes, or processor time, times nanoseconds), so interruptions round
nothing. See `fedactors.clock.trip` for the meaning of the outcomes.
"""

from __future__ import annotations

import simpy

from fedactors.clock.device_columns import Flows
from fedactors.clock.events.device import EventDevice
from fedactors.clock.events.event_time import EventTime, close
from fedactors.clock.events.foresight import Foresight
from fedactors.clock.events.trip_request import TripRequest
from fedactors.clock.flow import Flow
from fedactors.clock.trip import moved
from fedactors.clock.virtual_time import Waits
from fedactors.plan import NEVER, SECOND, Order, Outcome, Time


class _CutError(Exception):
    """The trip goes no further: its device has departed, or has lost the work."""


class TripProcess:
    """A trip under way."""

    def __init__(self, world: EventTime, device: EventDevice, request: TripRequest, foresight: Foresight) -> None:
        self.device = device
        self.request = request
        self.over = simpy.Event(world.env)
        """Triggers when the server no longer waits: the upload has arrived, the device has departed, or it will never
        report and there is no deadline to wait for."""
        self.steps = 0  # local steps completed
        self.never_reports = False  # it will never end, and there is no deadline: the server does not wait for it
        self.outcome: Outcome | None = None  # known once the server is told, or the work is lost
        self.finished: Time = NEVER  # when that was
        self._world = world
        self._foresight = foresight
        self._flows: Flows = foresight.flows
        self._started = world.now
        self._downloaded: Time | None = None
        self._computed: Time | None = None
        self._flow: Flow | None = None  # of the stage that is going on
        self._since: Time = world.now  # from when on the device has been on in it
        self._running = False
        self._was_off = False  # at some time of the trip
        self._progress = {"wait": 0, "down": 0, "steps": 0, "answer": 0, "up": 0}  # integrals, by stage
        self._stage = "wait"
        self._target = foresight.target(device, request)
        self._process = world.env.process(self._play())

    @property
    def heard(self) -> bool:
        """Whether the update has arrived."""
        return self.outcome in (Outcome.COMPLETE, Outcome.PARTIAL)

    def settle(self, closed: Time, *, early: bool) -> Order:
        """End the trip at `closed`, `early` if the round closes by quorum, and return its order."""
        self._pause(closed)
        outcome, finished = self.outcome, min(self.finished, closed)
        if outcome is None:
            outcome = Outcome.CANCELLED if early and not self.never_reports else self._silent()
        if self._process.is_alive:
            self._process.interrupt()
        self.device.set_stage("idle")
        self.device.end_following()
        return self._order(outcome, finished)

    def _silent(self) -> Outcome:
        """Return why nothing has arrived: a device that was always on has waited too long for a line of others."""
        waited = self._target.silent is Outcome.OFFLINE and self.device.line() is not None and not self._was_off
        return Outcome.LATE if waited else self._target.silent

    def _play(self) -> Waits:
        flows = self._flows
        device, request = self.device, self.request
        try:
            if not request.linked or (self._target.loses_work and not device.on):
                self._lose()
            self.never_reports = self._foresight.never_ends(device, request, self._target)
            if self.never_reports:
                close(self.over)
            device.set_stage("download")
            yield from self._advance("wait", flows.on, request.latency)
            yield from self._transfer("down", flows.down, request.down * SECOND)
            self._downloaded = self._world.now
            device.set_stage("compute")
            yield from self._compute()
            self._computed = self._world.now
            if not self.steps:
                device.set_stage("idle")
                yield from self._until_departure()
            device.set_stage("upload")
            yield from self._advance("answer", flows.on, request.latency)
            yield from self._transfer("up", flows.up, request.up * SECOND)
            self._end(Outcome.COMPLETE if self.steps == request.work.wanted else Outcome.PARTIAL)
        except (_CutError, simpy.Interrupt):
            pass
        device.set_stage("idle")

    def _compute(self) -> Waits:
        """Take local steps, in units, as long as one more is wanted and its upload would still be in time."""
        request, unit = self.request, self.request.work.unit
        share = self._flows.share
        while self._foresight.goes_on(self.device, request, self._target, self.steps, self._progress["steps"]):
            yield from self._advance("steps", share, self._foresight.needed(request, self.steps + unit))
            self.steps += unit

    def _advance(self, stage: str, flow: Flow, amount: int, *, once: bool = False) -> Waits:
        """Advance in a stage until its integral is `amount`, or, if `once`, until the device goes off."""
        device = self.device
        self._stage, self._flow = stage, flow
        while self._progress[stage] < amount:
            self._check()
            if not device.on:
                if once:
                    return
                yield device.switched
                continue
            self._running = True
            self._since = self._world.now
            when = flow.reach(device.client, self._since, amount - self._progress[stage])
            yield from self._world.until_first(when, device.switched)
            self._pause(self._world.now)
        self._flow = None

    def _transfer(self, stage: str, flow: Flow, amount: int) -> Waits:
        """Advance in a transfer, while its device holds the line that it shares with others, if it shares one."""
        line = self.device.line()
        if line is None:
            yield from self._advance(stage, flow, amount)
            return
        while self._progress[stage] < amount:
            self._check()
            if not self.device.on:
                yield self.device.switched
                continue
            with line.request() as turn:
                yield from self._world.until_first(NEVER, turn, self.device.switched)
                if turn.processed and self.device.on:
                    yield from self._advance(stage, flow, amount, once=True)

    def _pause(self, now: Time) -> None:
        """Add what the stage has done since the device has been on in it; nothing counts after the deadline."""
        until = min(now, self.request.deadline)
        if self._running and self._flow is not None and until > self._since:
            self._progress[self._stage] += self._flow.given(self.device.client, self._since, until)
        self._running = False

    def _check(self) -> None:
        """Raise _CutError if the deadline has passed, or the device has departed or lost the work by going off."""
        if self._world.now > self.request.deadline:
            raise _CutError  # the server is at work, and settles the trip later
        self._was_off |= not self.device.on
        if self.device.gone:
            self._end(Outcome.DEPARTED)
            raise _CutError
        if self._target.loses_work and not self.device.on:
            self._lose()
        if not self.device.on and not self.device.unforeseen and self.request.deadline == NEVER:
            self.never_reports = True
            close(self.over)

    def _lose(self) -> None:
        """Note that the work is lost, of which the server learns only where there is no deadline."""
        self.outcome = self._target.silent
        self.finished = self._world.now
        if self.request.deadline == NEVER:
            close(self.over)
        raise _CutError

    def _until_departure(self) -> Waits:
        while True:
            self._check()
            yield self.device.switched

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.finished = self._world.now
        close(self.over)

    def _order(self, outcome: Outcome, finished: Time) -> Order:
        request = self.request
        downloaded = finished if self._downloaded is None else min(finished, self._downloaded)
        computed = finished if self._computed is None else min(finished, self._computed)
        return Order(
            request.client,
            request.base,
            request.work.wanted,
            self.steps,
            outcome,
            self._started,
            downloaded,
            computed,
            finished,
            down=self._moved(request.down, "down", self._flows.down),
            up=self._moved(request.up, "up", self._flows.up),
        )

    def _moved(self, size: int, stage: str, flow: Flow) -> int:
        """Return the bytes of `size` that crossed the link; of a constant one in proportion to the time it took."""
        integral, client = self._progress[stage], self.device.client
        rate = flow.constant(client)
        if self.request.by_integral or rate is None:
            return min(size, integral // SECOND)
        return moved(size, integral // rate, -(-size * SECOND // rate))
