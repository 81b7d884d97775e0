"""One device's trip, planned by arithmetic: download, steps, upload, and the instant it is over.

A trip advances only while its device is on: first the download, then one local step after another, then the upload.
While the device is off, the trip pauses (or is lost, `abort`). It meets the deadline if the device is on long enough
before it, so no event per step is needed. Ends are inclusive: a step or an upload that ends exactly at a deadline, or
exactly when the window closes, counts.

    outcome     upload arrived?   why not
    complete    yes, all steps
    partial     yes, fewer steps
    too_slow    no                uninterrupted, a deadline-aware device could not have uploaded one step in time
    late        no                uninterrupted, a naive device would have been late all the same; or a device that was
                                  always on waited for a line that it shares with others
    offline     no                off at the wrong moment: uninterrupted, it would have arrived
    departed    no                left for good with the work in flight; a device that `hands_in` its work stops in time
                                  for that, and departs only where not one step and an upload fitted
    cancelled   no                the round closed before (quorum)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fedactors.clock.availability import Int64, integers
from fedactors.clock.device_columns import Population
from fedactors.plan import HEARD, NEVER, Order, Outcome, Time
from fedactors.workload import Workload

REPORTED = HEARD | {Outcome.DEPARTED}  # the server learns of the end of these trips at once


class Trip(NamedTuple):
    """A planned trip. `ends` is when the server no longer waits for it: upload, departure, or it can never report."""

    client: int
    base: int
    started: Time
    origin: Time  # the device's on-time when the trip began
    work: Workload
    steps: int  # local steps it will have completed if it is not cut short
    outcome: Outcome
    ends: Time
    gives_up: Time  # a silent trip does nothing after this


Size = int | Int64  # bytes: the same for every client, or `(clients,)`


class Missed(NamedTuple):
    """Bytes that a download has besides, of a device that has an older version of what is sent as differences.

    A download's size is that of one difference. `most` bytes more are the whole model.
    """

    each: int  # of a version
    most: int


NOTHING_MISSED = Missed(0, 0)


class TripPlanner:
    """Plans trips of a population with one payload; durations of transfers are columns made once.

    The first download of a device has `once` bytes more than `down`, until it is completed (`note_download`). Later
    ones have those of the versions that the device has missed when it is asked (`ask`).
    """

    def __init__(
        self, population: Population, down: Size, up: Size, once: int = 0, missed: Missed = NOTHING_MISSED
    ) -> None:
        self._population = population
        self._availability = population.availability
        self._sizes = (down, up)
        self._latency = integers(population.latency)
        self._next = _transfer(down + once, population.down) + population.latency  # ns
        self._down = integers(self._next)
        self._extra: Int64 = np.full(len(population) if once or missed.each else 0, once)  # bytes on top of `down`
        self._missed = missed
        self._has: Int64 = np.full(len(population) if missed.each else 0, -1)  # version; -1 before a first download
        self._up = integers(_transfer(up, population.up) + population.latency)
        self._per_sample = integers(population.per_sample)
        self._deadline_aware = integers(population.deadline_aware)
        self._abort = integers(population.abort)
        self._depart = integers(population.depart)
        self._hands_in = integers(population.hands_in)

    @property
    def transfers(self) -> tuple[Sequence[int], Sequence[int]]:
        """On-time of each device's download and upload, latency included, ns."""
        return self._down, self._up

    def download(self, client: int) -> int:
        """Return the bytes of the client's next download."""
        return _of(self._sizes[0], client) + (int(self._extra[client]) if self.changes else 0)

    def upload(self, client: int) -> int:
        """Return the bytes of the client's upload."""
        return _of(self._sizes[1], client)

    def sizes(self, clients: Int64) -> tuple[Int64, Int64]:
        """Return the bytes of the next downloads and uploads of `clients`."""
        down, up = (np.full(len(clients), size) if isinstance(size, int) else size[clients] for size in self._sizes)
        return (down + self._extra[clients] if self.changes else down), up

    @property
    def changes(self) -> bool:
        """Whether downloads of a device depend on those that it has completed."""
        return len(self._extra) > 0

    def ask(self, clients: Int64, base: int) -> None:
        """Note that `clients` are asked to start from version `base`, and what they need for it."""
        if not self._missed.each:
            return
        known = clients[self._has[clients] >= 0]
        self._set_extra(known, np.minimum((base - self._has[known] - 1) * self._missed.each, self._missed.most))

    def note_download(self, client: int, base: int) -> None:
        """Note that `client` has completed a download: it has what is sent once, and version `base`."""
        if self._missed.each:
            self._has[client] = base  # what it misses from now on is known when it is asked again
        else:
            self._set_extra(np.array([client]), np.zeros(1, np.int64))

    def _set_extra(self, clients: Int64, extra: Int64) -> None:
        """Set what `clients` are sent besides, and how long that takes."""
        self._extra[clients] = extra
        size = (self._sizes[0] if isinstance(self._sizes[0], int) else self._sizes[0][clients]) + extra
        self._next[clients] = _transfer(size, self._population.down[clients]) + self._population.latency[clients]

    def per_sample(self, client: int) -> int:
        """Return the ns that a device takes for a sample in its next trip."""
        return self._per_sample[client]

    def set_pace(self, client: int, base: int, start: Time, deadline: Time, work: Workload) -> bool:
        """Set how fast a device computes in a trip that begins at `start`; return whether it can be reached at all.

        Only devices whose participation is drawn change their pace.
        """
        return True

    def plan(self, client: int, base: int, start: Time, deadline: Time, work: Workload) -> Trip:
        """Return the trip of `client` from `start` if it may take until `deadline` (NEVER: as long as it needs)."""
        self.ask(np.array([client]), base)
        origin = self._availability.elapsed(client, start)
        departs = self._depart[client]
        hands_in = self._stops_before_departure(client, deadline)
        last = departs if hands_in else deadline  # when an upload must have arrived
        target, silent = self._target(client, start, last, work, foresee=departs > deadline, hands_in=hands_in)
        gives_up = self._giving_up(client, start)
        limit = last if gives_up == NEVER else max(last, gives_up)
        end = self._finish(client, start, work, target, limit) if target else NEVER
        outcome = Outcome.COMPLETE if target == work.wanted else Outcome.PARTIAL
        if end > min(last, NEVER - 1) or gives_up < end:
            end, outcome = NEVER, silent
        if departs <= min(deadline, gives_up) and departs < end:
            end, outcome = departs, Outcome.DEPARTED
        if deadline == end == NEVER:
            end = _silent_end(gives_up, start)
        return Trip(client, base, start, origin, work, target, outcome, end, gives_up)

    def settle(self, trip: Trip, closed: Time, *, early: bool = False) -> Order:
        """Return the order of a trip as it stands when its round closes at `closed`, `early` if by quorum."""
        outcome, finished = trip.outcome, min(closed, max(trip.gives_up, trip.started))
        if trip.ends <= closed and trip.outcome in REPORTED:
            finished = trip.ends
        elif trip.ends > closed and early and trip.gives_up > closed:
            outcome = Outcome.CANCELLED
        return self._order(trip, outcome, finished)

    def _stops_before_departure(self, client: int, deadline: Time) -> bool:
        """Whether a device departs by `deadline` and hands in what it has before."""
        departs = self._depart[client]
        return departs <= deadline and departs < NEVER and bool(self._hands_in[client])

    def _giving_up(self, client: int, start: Time) -> Time:
        """Return when an interruption ends a trip that begins at `start`; NEVER if none does."""
        return self._availability.window_end(client, start) if self._abort[client] else NEVER

    def _target(
        self, client: int, start: Time, deadline: Time, work: Workload, *, foresee: bool, hands_in: bool = False
    ) -> tuple[int, Outcome]:
        """Return the steps that a device aims at, and the outcome if nothing arrives.

        A deadline-aware device takes its on-time until the deadline into account (`foresee`), but no departure, and no
        interruption where interruptions lose the work. A device that `hands_in` stops before it departs, whether or not
        it is deadline-aware.
        """
        if hands_in:
            return self._feasible(client, start, deadline, work), Outcome.OFFLINE
        nominal = self._nominal(client, start, deadline, work) if deadline < NEVER else work.wanted
        if not self._deadline_aware[client]:
            return work.wanted, Outcome.OFFLINE if nominal == work.wanted else Outcome.LATE
        silent = Outcome.OFFLINE if nominal else Outcome.TOO_SLOW
        if deadline == NEVER or not foresee or self._abort[client]:
            return nominal, silent
        return self._feasible(client, start, deadline, work), silent

    def _nominal(self, client: int, start: Time, deadline: Time, work: Workload) -> int:
        """Return the most steps after which an upload arrives by `deadline` if nothing interrupts."""
        return self._steps(client, work, deadline - start - self._down[client] - self._up[client])

    def _feasible(self, client: int, start: Time, deadline: Time, work: Workload) -> int:
        """Return the most steps after which an upload arrives by `deadline`, interruptions included."""
        budget = self._availability.elapsed(client, deadline) - self._availability.elapsed(client, start)
        return self._steps(client, work, budget - self._down[client] - self._up[client])

    def _finish(self, client: int, start: Time, work: Workload, steps: int, limit: Time) -> Time:
        """Return when a trip of `steps` steps is over; after `limit` any later time will do."""
        origin = self._availability.elapsed(client, start)
        return self._availability.reach(client, origin + self._on_time(client, work, steps))

    def _steps(self, client: int, work: Workload, on_time: Time) -> int:
        return work.steps_within(on_time // self._per_sample[client])

    def _on_time(self, client: int, work: Workload, steps: int) -> Time:
        """Return the on-time of a whole trip with `steps` steps, ns."""
        return self._down[client] + work.samples(steps) * self._per_sample[client] + self._up[client]

    def _order(self, trip: Trip, outcome: Outcome, finished: Time) -> Order:
        """Work out stages and bytes of a trip that ended at `finished`."""
        client, reach = trip.client, self._availability.reach
        spent = self._availability.elapsed(client, finished) - trip.origin
        down, up = self._down[client], self._up[client]
        steps = min(trip.steps, self._steps(client, trip.work, spent - down))
        computed_at = down + trip.work.samples(trip.steps) * self._per_sample[client]
        downloaded = min(finished, max(trip.started, reach(client, trip.origin + down)))
        computed = min(finished, max(downloaded, reach(client, trip.origin + computed_at)))
        uploading = spent - computed_at if trip.steps else 0
        latency = self._latency[client]
        return Order(
            client, trip.base, trip.work.wanted, steps, outcome, trip.started, downloaded, computed, finished,
            down=moved(self.download(client), spent - latency, down - latency),
            up=moved(self.upload(client), uploading - latency, up - latency),
        )  # fmt: skip


def _silent_end(gives_up: Time, start: Time) -> Time:
    """Return when a trip without a deadline is over that will not report: the server does not wait for it."""
    return gives_up if gives_up < NEVER else start


def _of(size: Size, client: int) -> int:
    return size if isinstance(size, int) else int(size[client])


def _transfer(size: Size, rates: Int64) -> Int64:
    """Return the ns that `size` bytes, of all or of each, take at each of `rates` bytes/s, rounded up."""
    if int(np.max(size, initial=0)) * 10**9 < 2**62:
        return -(-(size * 10**9) // rates)
    sizes = np.broadcast_to(np.asarray(size, dtype=object), rates.shape)
    pairs = zip(sizes.tolist(), rates.tolist(), strict=True)
    return np.array([min(-(-(one * 10**9) // rate), NEVER // 4) for one, rate in pairs], np.int64)


def moved(size: int, spent: Time, needed: Time) -> int:
    """Return the bytes of `size` that crossed a link after `spent` of `needed` ns."""
    if not size or spent >= needed:
        return size
    return size * max(spent, 0) // needed
