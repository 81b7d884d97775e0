"""How many steps a device aims at, given the deadline and what it knows of its own future.

A deadline-aware device looks ahead at each step boundary: it goes on if the upload after one more unit of steps would
still be in time, counting the windows recorded for it. It foresees no departure, nothing of what a behaviour does, and
no interruption where interruptions lose the work: then it aims at what would fit if nothing happened.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from fedactors.clock.device_columns import Flows, Population
from fedactors.clock.events.device import EventDevice
from fedactors.clock.events.trip_request import TripRequest
from fedactors.clock.flow import Flow, open_always, through
from fedactors.plan import NEVER, SECOND, Outcome, Time
from fedactors.traces.series import FULL_SHARE


class TripTarget(NamedTuple):
    """What a device wants of a trip."""

    steps: int | None  # that it aims at; None: it decides at each step boundary
    last: Time  # when its upload must have arrived
    silent: Outcome  # the outcome if it has not
    loses_work: bool  # whether an interruption ends the trip


class Foresight:
    """What the devices of a population expect."""

    def __init__(self, population: Population, flows: Flows) -> None:
        self._population = population
        self.flows = flows

    def target(self, device: EventDevice, request: TripRequest) -> TripTarget:
        """Return what a device wants of a trip that begins now."""
        client, deadline = request.client, request.deadline
        abort = bool(self._population.abort[client])
        if not request.linked:
            return TripTarget(0, deadline, Outcome.OFFLINE, abort)
        if self._hands_in(device, deadline):
            return TripTarget(None, device.depart, Outcome.OFFLINE, abort)
        wanted = request.work.wanted
        nominal = self._nominal(device, request) if deadline < NEVER else wanted
        if not self._population.deadline_aware[client]:
            return TripTarget(wanted, deadline, Outcome.OFFLINE if nominal == wanted else Outcome.LATE, abort)
        foresees = not abort and deadline < min(NEVER, device.depart)
        return TripTarget(
            None if foresees else nominal, deadline, Outcome.OFFLINE if nominal else Outcome.TOO_SLOW, abort
        )

    def _hands_in(self, device: EventDevice, deadline: Time) -> bool:
        """Whether a device departs by `deadline` and hands in what it has before."""
        return bool(self._population.hands_in[device.client]) and device.depart <= min(deadline, NEVER - 1)

    def goes_on(self, device: EventDevice, request: TripRequest, target: TripTarget, steps: int, progress: int) -> bool:
        """Whether a device that has done `steps` steps begins another unit of them; `progress` is their integral."""
        more = steps + request.work.unit
        if target.steps is not None:
            return more <= target.steps
        left = self.needed(request, more) - progress
        if more > request.work.wanted:
            return False
        return self._answered(request, device.world.now, left, interrupted=True) <= target.last

    def never_ends(self, device: EventDevice, request: TripRequest, target: TripTarget) -> bool:
        """Whether it is known that a trip without a deadline will never report."""
        a, now = self._population.availability, device.world.now
        if request.deadline < NEVER or device.depart < NEVER or device.behaves:
            return False
        if target.loses_work and a.window_end(request.client, now) < NEVER:
            return False
        return self._arrives(request, now, request.work.wanted, interrupted=True) >= NEVER

    def needed(self, request: TripRequest, steps: int) -> int:
        """Return the integral of the processor's share that `steps` steps take, ppm ns."""
        return request.work.samples(steps) * request.per_sample * FULL_SHARE

    def _nominal(self, device: EventDevice, request: TripRequest) -> int:
        """Return the most steps after which an upload is in time if nothing interrupts."""
        unit, now = request.work.unit, device.world.now
        units = range(1, request.work.wanted // unit + 1)
        return unit * bisect_right(
            units, request.deadline, key=lambda count: self._arrives(request, now, count * unit, interrupted=False)
        )

    def _arrives(self, request: TripRequest, begin: Time, steps: int, *, interrupted: bool) -> Time:
        """Return when the upload of a trip that begins at `begin` arrives; NEVER if it does not."""
        client, flows = request.client, self.flows
        asked = self._done(flows.on, client, begin, request.latency, interrupted=interrupted)
        got = self._done(flows.down, client, asked, request.down * SECOND, interrupted=interrupted)
        return self._answered(request, got, self.needed(request, steps), interrupted=interrupted)

    def _answered(self, request: TripRequest, begin: Time, left: int, *, interrupted: bool) -> Time:
        """Return when an upload arrives after `left` more work of the processor from `begin` on."""
        client, flows = request.client, self.flows
        done = self._done(flows.share, client, begin, left, interrupted=interrupted)
        answered = self._done(flows.on, client, done, request.latency, interrupted=interrupted)
        return self._done(flows.up, client, answered, request.up * SECOND, interrupted=interrupted)

    def _done(self, flow: Flow, client: int, begin: Time, work: int, *, interrupted: bool) -> Time:
        """Return when `work` of a flow is done from `begin` on, `interrupted` as the recording says, or never.

        At a constant rate that is when the device has been on for long enough, which is looked up. A device whose rates
        vary goes from window to window, as it does in columns.
        """
        a, rate = self._population.availability, flow.constant(client)
        if begin >= NEVER or work <= 0:
            return begin
        if not interrupted or rate is None or self.flows.varying[client]:
            return through(a.spans if interrupted else open_always, flow, client, begin, work, NEVER)
        return min(a.reach(client, a.elapsed(client, begin) - (-work // rate)), NEVER) if rate else NEVER
