"""Trips of a whole cohort at once: the arithmetic of `trip` on columns, one entry per client asked.

`TripPlanner.plan` and `TripPlanner.settle` are the reference; here every line of theirs is one operation on columns, so
that a million trips cost seconds. A device whose figures could leave 64 bits is planned by the reference itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedactors.clock import ontime
from fedactors.clock.availability import Int64
from fedactors.clock.device_columns import Population
from fedactors.clock.trip import REPORTED, Trip, TripPlanner, moved
from fedactors.plan import NEVER, OUTCOME_CODES, OUTCOMES, Order, Orders, Outcome, Time
from fedactors.workload import CohortWork, Workload, WorkloadTable

_REPORTED = np.array([outcome in REPORTED for outcome in OUTCOMES])
_FITS = 2.0**60  # ns of work that can be added to a time and stay below NEVER


@dataclass(frozen=True)
class Cohort:
    """Planned trips in columns, one entry per client asked, ascending; the meaning is that of `Trip`."""

    clients: Int64
    base: int
    started: Time
    origin: Int64
    work: CohortWork
    steps: Int64
    outcome: NDArray[np.int64]  # index into OUTCOMES
    ends: Int64
    gives_up: Int64
    alone: dict[int, Trip]  # entry -> trip planned by the reference

    def __len__(self) -> int:
        return len(self.clients)


class CohortPlanner:
    """Plans and settles the trips of cohorts."""

    def __init__(self, population: Population, trip_planner: TripPlanner, workloads: Sequence[Workload]) -> None:
        self._population = population
        self._availability = population.availability
        self._trip_planner = trip_planner
        self._workloads = workloads
        self._workload_table = WorkloadTable(workloads)
        self._down, self._up = (np.asarray(column) for column in trip_planner.transfers)
        everything = self._workload_table.all()
        work = everything.samples(everything.wanted).astype(float) * population.per_sample
        self.has_work = self._workload_table.has_work
        self._plain = work + self._down + self._up < _FITS
        if population.flows is not None:
            self._plain &= ~population.flows.varying

    def plan(self, clients: Int64, base: int, start: Time, deadline: Time) -> Cohort:
        """Return the trips of `clients` from `start` if they may take until `deadline` (NEVER: no limit)."""
        self._trip_planner.ask(clients, base)
        alone = {
            int(k): self._trip_planner.plan(int(clients[k]), base, start, deadline, self._workloads[clients[k]])
            for k in np.flatnonzero(~self._plain[clients] | self._stops_before_departure(clients, deadline))
        }
        cohort = self._planned(clients, base, start, deadline, alone)
        for k, trip in alone.items():
            cohort.outcome[k], cohort.ends[k] = OUTCOME_CODES[trip.outcome], trip.ends
        return cohort

    def settle(self, cohort: Cohort, closed: Time, *, early: bool = False) -> Orders:
        """Return the orders of the trips as they stand when their round closes at `closed`, `early` if by quorum."""
        outcome = cohort.outcome.copy()
        ended = cohort.ends <= closed
        reported = ended & _REPORTED[outcome]
        finished = np.where(reported, cohort.ends, np.minimum(closed, np.maximum(cohort.gives_up, cohort.started)))
        if early:
            outcome[~ended & (cohort.gives_up > closed)] = OUTCOME_CODES[Outcome.CANCELLED]
        orders = self._orders(cohort, outcome, finished)
        if cohort.alone:
            settled = (self._trip_planner.settle(trip, closed, early=early) for trip in cohort.alone.values())
            places = list(cohort.alone)
            for column, values in zip(orders.columns, Orders.of(settled).columns, strict=True):
                column[places] = values
        self.note_downloads(orders)
        return orders

    def _stops_before_departure(self, clients: Int64, deadline: Time) -> NDArray[np.bool_]:
        """Return which clients depart by `deadline` and stop in time for it."""
        departs = self._population.depart[clients]
        return self._population.hands_in[clients] & (departs <= deadline) & (departs < NEVER)

    @property
    def everybody(self) -> Int64:
        """Every client there is, ascending."""
        return np.arange(len(self._population), dtype=np.int64)

    @property
    def work(self) -> CohortWork:
        """What all clients are asked to do."""
        return self._workload_table.all()

    def work_of(self, client: int) -> Workload:
        """Return what a client is asked to do."""
        return self._workloads[client]

    @property
    def trip_planner(self) -> TripPlanner:
        """What plans single trips."""
        return self._trip_planner

    def plan_one(self, client: int, base: int, start: Time, deadline: Time) -> Trip:
        """Return the trip of one client, as `plan` does for many."""
        return self._trip_planner.plan(client, base, start, deadline, self._workloads[client])

    def settle_one(self, trip: Trip, closed: Time, *, early: bool = False) -> Order:
        """Return the order of one trip, as `settle` does for many."""
        order = self._trip_planner.settle(trip, closed, early=early)
        self.note_downloads([order])
        return order

    def note_downloads(self, orders: Sequence[Order]) -> None:
        """Note which clients have completed a download, so that what is sent once is not sent to them again."""
        if not self._trip_planner.changes:
            return
        for order in orders:
            if order.down == self._trip_planner.download(order.client):
                self._trip_planner.note_download(order.client, order.base)

    def _planned(self, clients: Int64, base: int, start: Time, deadline: Time, alone: dict[int, Trip]) -> Cohort:
        a, work = self._availability, self._workload_table.of(clients)
        now = np.full(len(clients), start, np.int64)
        origin = ontime.elapsed(a, clients, now)
        target, silent = self._targets(clients, origin, start, deadline, work)
        compute = work.samples(target) * self._population.per_sample[clients]
        finish = ontime.reach(a, clients, origin + self._down[clients] + compute + self._up[clients])
        finish[target == 0] = NEVER
        outcome = np.where(target == work.wanted, OUTCOME_CODES[Outcome.COMPLETE], OUTCOME_CODES[Outcome.PARTIAL])
        gives_up = self._giving_up(clients, start)
        missed = (target == 0) | (finish > min(deadline, NEVER - 1)) | (gives_up < finish)
        outcome = np.where(missed, silent, outcome)
        ends = np.where(missed, NEVER, finish)
        departs = self._population.depart[clients]
        leaves = (departs <= deadline) & (departs < ends) & (departs <= gives_up)
        outcome[leaves], ends[leaves] = OUTCOME_CODES[Outcome.DEPARTED], departs[leaves]
        if deadline == NEVER:  # the server does not wait for a device that will not report
            ends = np.where(ends < NEVER, ends, np.where(gives_up < NEVER, gives_up, start))
        return Cohort(
            clients=clients,
            base=base,
            started=start,
            origin=origin,
            work=work,
            steps=target,
            outcome=outcome,
            ends=ends,
            gives_up=gives_up,
            alone=alone,
        )

    def _targets(
        self, clients: Int64, origin: Int64, start: Time, deadline: Time, work: CohortWork
    ) -> tuple[Int64, NDArray[np.int64]]:
        """Return the steps that each device aims at, and its outcome if nothing arrives."""
        deadline_aware = self._population.deadline_aware[clients]
        fixed = self._down[clients] + self._up[clients]
        per_sample, nominal = self._population.per_sample[clients], work.wanted
        if deadline < NEVER:
            nominal = work.steps_within((deadline - start - fixed) // per_sample)
        naive = np.where(nominal == work.wanted, OUTCOME_CODES[Outcome.OFFLINE], OUTCOME_CODES[Outcome.LATE])
        careful = np.where(nominal > 0, OUTCOME_CODES[Outcome.OFFLINE], OUTCOME_CODES[Outcome.TOO_SLOW])
        target = np.where(deadline_aware, nominal, work.wanted)
        if deadline < NEVER:
            foresees = deadline_aware & (self._population.depart[clients] > deadline) & ~self._population.abort[clients]
            budget = ontime.elapsed(self._availability, clients, np.full(len(clients), deadline, np.int64)) - origin
            target = np.where(foresees, work.steps_within((budget - fixed) // per_sample), target)
        return target, np.where(deadline_aware, careful, naive)

    def _giving_up(self, clients: Int64, start: Time) -> Int64:
        gives_up = np.full(len(clients), NEVER, np.int64)
        aborting = np.flatnonzero(self._population.abort[clients])
        gives_up[aborting] = ontime.window_end(self._availability, clients[aborting], start)
        return gives_up

    def _orders(self, cohort: Cohort, outcome: NDArray[np.int64], finished: Int64) -> Orders:
        """Work out stages and bytes of trips that ended at `finished`."""
        a, clients = self._availability, cohort.clients
        origin, work = cohort.origin, cohort.work
        per_sample, latency = self._population.per_sample[clients], self._population.latency[clients]
        down, up = self._down[clients], self._up[clients]
        spent = ontime.elapsed(a, clients, finished) - origin
        steps = np.minimum(cohort.steps, work.steps_within((spent - down) // per_sample))
        computed_at = down + work.samples(cohort.steps) * per_sample
        arrived = np.maximum(cohort.started, ontime.reach(a, clients, origin + down))
        downloaded = np.minimum(finished, arrived)
        computed = np.minimum(finished, np.maximum(downloaded, ontime.reach(a, clients, origin + computed_at)))
        uploading = np.where(cohort.steps > 0, spent - computed_at, 0)
        downloads, uploads = self._trip_planner.sizes(clients)
        return Orders(
            client=clients.copy(),
            base=np.full(len(clients), cohort.base),
            wanted=work.wanted.copy(),
            steps=steps,
            outcome=outcome,
            started=np.full(len(clients), cohort.started),
            downloaded=downloaded,
            computed=computed,
            finished=finished,
            down=_moved(downloads, spent - latency, down - latency),
            up=_moved(uploads, uploading - latency, up - latency),
        )


def _moved(sizes: Int64, spent: Int64, needed: Int64) -> Int64:
    """Return the bytes of `sizes` that crossed each link after `spent` of `needed` ns."""
    result: Int64 = sizes.copy()
    for k in np.flatnonzero(spent < needed).tolist():
        result[k] = moved(int(sizes[k]), int(spent[k]), int(needed[k]))
    return result
