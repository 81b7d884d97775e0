"""What the clock gives the fleet: which clients train, from which version, how many steps, when.

A `Plan` is one aggregation of the server. It is complete before a single gradient exists, because time does
not depend on gradients. Everything here is frozen, made of integers, and imports nothing of ours but units of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from fedactors.durations import SECOND as SECOND
from fedactors.durations import Time as Time

Int64 = NDArray[np.int64]
NEVER: Time = 2**62  # later than anything that happens; sums of two still fit an int64


class Phase(IntEnum):
    """Order of events that fall on the same nanosecond: the lower one happens first.

    An upload that arrives exactly at the deadline is in time; a window [on, off) that ends where another
    begins leaves the device on; a cohort is drawn after everything else has settled.
    """

    FINISH = 0
    DEPART = 1
    OFF = 2
    ARRIVE = 3
    ON = 4
    CLOSE = 5
    DISPATCH = 6


class Outcome(str, Enum):
    """How the trip of a client ended. Each order has exactly one outcome."""

    COMPLETE = "complete"  # all steps done, upload arrived in time
    PARTIAL = "partial"  # some steps done, upload arrived in time
    OFFLINE = "offline"  # nothing arrived, because the device could not be reached or was interrupted
    LATE = "late"  # a naive device worked on, or others held the line: its upload would have missed the deadline
    TOO_SLOW = "too_slow"  # not one step and an upload fit before the deadline of a deadline-aware device
    DEPARTED = "departed"  # left for good in the middle
    CANCELLED = "cancelled"  # the quorum was reached without it
    QUARANTINED = "quarantined"  # its update held NaN or Inf and was set aside
    STALE = "stale"  # its update arrived, from a model older than the server takes
    LOST = "lost"  # its update arrived, and too few others of its group for secure aggregation

    # of str: those of Enum are written in Python, and each order uses them a dozen times
    __str__ = str.__str__
    __hash__ = str.__hash__


OUTCOMES = tuple(Outcome)
OUTCOME_CODES = {outcome: code for code, outcome in enumerate(OUTCOMES)}  # as columns have them
HEARD = frozenset({Outcome.COMPLETE, Outcome.PARTIAL})
_IS_HEARD = np.array([outcome in HEARD for outcome in OUTCOMES])


class Order(NamedTuple):
    """One client's trip: asked, downloaded, computed, uploaded, and how it ended.

    `started <= downloaded <= computed <= finished` in virtual nanoseconds; a stage that was not reached
    carries the time at which the trip ended. `steps` counts the local steps completed, whether or not the
    server got to see them; `down` and `up` are the bytes that really crossed the link.
    """

    client: int
    base: int  # model version the client started from
    wanted: int  # local steps the server asked for
    steps: int  # local steps completed
    outcome: Outcome
    started: Time
    downloaded: Time
    computed: Time
    finished: Time
    down: int
    up: int

    @property
    def heard(self) -> bool:
        """Whether the server received an update from this trip."""
        return self.outcome in HEARD


@dataclass(frozen=True, slots=True, eq=False)
class Orders(Sequence[Order]):
    """The trips of a Plan in columns `(orders,)`, with the fields of `Order`; a sequence of `Order` to readers."""

    client: Int64
    base: Int64
    wanted: Int64
    steps: Int64
    outcome: Int64  # index into OUTCOMES
    started: Int64
    downloaded: Int64
    computed: Int64
    finished: Int64
    down: Int64
    up: Int64

    @classmethod
    def of(cls, orders: Iterable[Order]) -> Orders:
        """Return the columns of single orders, in their order."""
        rows = [(*order[:4], OUTCOME_CODES[order.outcome], *order[5:]) for order in orders]
        return cls(*np.array(rows, np.int64).reshape(len(rows), len(Order._fields)).T.copy())

    @property
    def columns(self) -> tuple[Int64, ...]:
        """All columns, in the order of the fields."""
        return tuple(getattr(self, name) for name in Order._fields)

    @property
    def is_heard(self) -> NDArray[np.bool_]:
        """Whether the server received an update from each trip."""
        return _IS_HEARD[self.outcome]

    def take(self, chosen: Int64 | NDArray[np.bool_]) -> Orders:
        """Return the orders at some places, or where a mask says so."""
        return Orders(*(column[chosen] for column in self.columns))

    def __len__(self) -> int:
        return len(self.client)

    @overload
    def __getitem__(self, place: int) -> Order: ...
    @overload
    def __getitem__(self, place: slice) -> Orders: ...
    def __getitem__(self, place: int | slice) -> Order | Orders:
        if isinstance(place, slice):
            return Orders(*(column[place] for column in self.columns))
        values = [int(column[place]) for column in self.columns]
        return _order(values)

    def __iter__(self) -> Iterator[Order]:
        return map(_order, zip(*(column.tolist() for column in self.columns), strict=True))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Orders):
            return all(map(np.array_equal, self.columns, other.columns))
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def _order(values: Sequence[int]) -> Order:
    """Return an order from its values, of which the outcome is a code."""
    return Order._make((*values[:4], OUTCOMES[values[4]], *values[5:]))


class StageTimes(NamedTuple):
    """For how long the devices of a Plan's orders were on in each stage of their trips, `(orders,)` ns."""

    down: Int64
    compute: Int64
    up: Int64
    idle: Int64  # on, with nothing left to do that could be in time

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StageTimes) and all(map(np.array_equal, self, other))

    def __ne__(self, other: object) -> bool:  # that of tuples compares columns for their truth
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(column.tobytes() for column in self))


class Moves(NamedTuple):
    """What a population whose devices arrive and depart by behaviours says of a Plan's moves."""

    instants: tuple[Time, ...]  # of those that arrived, then of those that departed
    members: int  # devices with work that belong to the population after them


class Tier(NamedTuple):
    """Which aggregator of several makes a Plan, and from which models."""

    edge: int  # number of the edge; -1: the cloud
    mixed: tuple[tuple[int, float], ...]  # versions whose mean is the model to which updates are added, with shares
    moved: int = 0  # bytes between edges and cloud since its last Plan
    number: int = 0  # of the cloud's aggregations, from 1
    edge_round: int = 0  # round of an edge by which rates go, from 1; of the cloud: the last one before it


@dataclass(frozen=True, slots=True)
class Plan:
    """One aggregation: the step from model `version` to `version + 1`.

    `orders` holds every client that was asked, in ascending client id. `oldest` is the oldest version that any
    later order may still start from, so that the fleet can delete older models.
    """

    version: int
    opened: Time
    closed: Time  # when the updates are aggregated
    ready: Time  # when the next version exists: `closed` plus the server's own work
    orders: Orders
    oldest: int
    arrived: tuple[int, ...] = ()
    departed: tuple[int, ...] = ()
    moves: Moves | None = None  # None: the scenario's population says when devices move
    stages: StageTimes | None = None  # None: nothing depends on them
    tier: Tier | None = None  # None: there is one server

    def heard(self) -> Orders:
        """Orders whose updates are aggregated, in ascending client id."""
        is_heard = self.orders.is_heard
        return self.orders if is_heard.all() else self.orders.take(is_heard)

    def count(self, outcome: Outcome) -> int:
        """Return the number of orders that ended in `outcome`."""
        return int(np.count_nonzero(self.orders.outcome == OUTCOME_CODES[outcome]))


class Payload(NamedTuple):
    """What one trip moves and what the server computes, as an algorithm declares it.

    `down` and `up` are in model sizes. Server work is counted in samples (forward and backward passes):
    `before` the broadcast, `during` the clients' work, `after` the aggregation, and `first` before the first round.
    `once` comes on top of `down` until a client has completed a download; `ahead` has reached every client when the
    run begins, at no virtual time. Where `down` has differences from the last version, a client that has an older one
    is sent `missed` more for each version in between, up to `missed_at_most` in all. `backhaul` are the bytes of a
    model between edges and cloud.
    """

    down: float = 1.0
    up: float = 1.0
    before: int = 0
    during: int = 0
    after: int = 0
    first: int = 0
    once: float = 0.0
    ahead: float = 0.0
    missed: float = 0.0
    missed_at_most: float = 0.0
    backhaul: int = 0


EndKind = Literal["done", "time", "budget", "nobody", "goal", "stopped", "interrupted", "diverged", "error"]


class Ending(str):
    """Why a run ended, as a sentence, and of which kind that is.

    done: all rounds; time: `server.until`; budget: of traffic, energy or CO2; nobody: no further update can come; goal:
    `server.stop`; stopped: after the rounds that were asked for; interrupted: by a signal; diverged: losses grew too
    far; error: any exception.
    """

    kind: EndKind

    def __new__(cls, text: str, kind: EndKind) -> Ending:
        """Return the ending of a `kind` that is said so."""
        made = super().__new__(cls, text)
        made.kind = kind
        return made


MaybeEnding = Ending | Literal[""]  # nothing while a run goes on


class Ends:
    """Endings that several kinds of servers have."""

    DONE = Ending("all rounds done", "done")
    TIME = Ending("virtual time limit", "time")
    HORIZON = Ending("virtual time reached its end, 146 years", "time")
    NOBODY_LEFT = Ending("nobody can be asked any more", "nobody")
    NOBODY_REPORTS = Ending("nobody who can be asked can ever report", "nobody")
