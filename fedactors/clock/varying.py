"""Trips of devices whose links or processor vary over time: the same trip, integrated piece by piece.

Where `TripPlanner` looks up on-time once, this goes through the windows in which the device is on, and integrates in
each of them the flow that the stage needs: latency takes on-time, a transfer bytes, a step processor time. The three
flows of a constant device give exactly the trip of `TripPlanner`, which a test checks.
"""

from __future__ import annotations

from typing import NamedTuple

from typing_extensions import override

from fedactors.clock.device_columns import Flows, Population
from fedactors.clock.flow import Flow, Gate, open_always, through, within
from fedactors.clock.trip import NOTHING_MISSED, Missed, Size, Trip, TripPlanner
from fedactors.plan import NEVER, SECOND, Order, Outcome, Time
from fedactors.traces.series import FULL_SHARE
from fedactors.workload import Workload


class _Stages(NamedTuple):
    """When each stage of a trip ends; NEVER where it does not."""

    asked: Time  # the download's latency is over
    downloaded: Time
    computed: Time
    answered: Time  # the upload's latency is over
    finished: Time


class VaryingTripPlanner(TripPlanner):
    """Plans trips of a population with flows; see `TripPlanner`."""

    def __init__(
        self,
        population: Population,
        flows: Flows,
        down: Size,
        up: Size,
        once: int = 0,
        missed: Missed = NOTHING_MISSED,
    ) -> None:
        super().__init__(population, down, up, once, missed)
        self._flows = flows

    @override
    def _finish(self, client: int, start: Time, work: Workload, steps: int, limit: Time) -> Time:
        return self._stages(self._availability.spans, client, start, work, steps, limit).finished

    @override
    def _nominal(self, client: int, start: Time, deadline: Time, work: Workload) -> int:
        return self._most(open_always, client, start, deadline, work)

    @override
    def _feasible(self, client: int, start: Time, deadline: Time, work: Workload) -> int:
        return self._most(self._availability.spans, client, start, deadline, work)

    @override
    def _order(self, trip: Trip, outcome: Outcome, finished: Time) -> Order:
        client, gate = trip.client, self._availability.spans
        flows = self._flows
        at = self._stages(gate, client, trip.started, trip.work, trip.steps, finished)
        down = 0
        up = 0
        steps = 0
        if at.asked <= finished:
            down = min(self.download(client), within(gate, flows.down, client, at.asked, finished) // SECOND)
        if at.downloaded <= finished:
            worked = within(gate, flows.share, client, at.downloaded, finished)
            steps = min(trip.steps, trip.work.steps_within(worked // (self._per_sample[client] * FULL_SHARE)))
        if trip.steps and at.answered <= finished:
            up = min(self.upload(client), within(gate, flows.up, client, at.answered, finished) // SECOND)
        return Order(
            client, trip.base, trip.work.wanted, steps, outcome, trip.started, min(finished, at.downloaded),
            min(finished, at.computed), finished, down, up,
        )  # fmt: skip

    def _most(self, gate: Gate, client: int, start: Time, deadline: Time, work: Workload) -> int:
        """Return the most steps, in whole units, after which an upload still arrives by `deadline`."""

        def fits(units: int) -> bool:
            return self._stages(gate, client, start, work, units * work.unit, deadline).finished <= deadline

        most, units = work.wanted // work.unit, 0
        if most and fits(most):  # most often everything fits
            return most * work.unit
        while most - units > 1:  # `units` fit, `most` do not
            middle = (units + most) // 2
            units, most = (middle, most) if fits(middle) else (units, middle)
        return units * work.unit

    def _stages(self, gate: Gate, client: int, start: Time, work: Workload, steps: int, limit: Time) -> _Stages:
        """Follow a trip of `steps` steps through its stages, up to `limit`."""
        flows = self._flows
        wait, needed = self._latency[client], work.samples(steps) * self._per_sample[client] * FULL_SHARE

        def ends(flow: Flow, begin: Time, amount: int) -> Time:
            return through(gate, flow, client, begin, amount, limit) if begin < NEVER else NEVER

        asked = ends(flows.on, start, wait)
        downloaded = ends(flows.down, asked, self.download(client) * SECOND)
        computed = ends(flows.share, downloaded, needed)
        answered = ends(flows.on, computed, wait)
        return _Stages(asked, downloaded, computed, answered, ends(flows.up, answered, self.upload(client) * SECOND))
