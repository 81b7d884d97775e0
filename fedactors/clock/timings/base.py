"""When the server aggregates, and whose updates: the policy of time, chosen in a scenario as `server.timing`.

    synchronous   rounds: every client asked starts from the newest model
    the others    `concurrency` clients work at any time, each from the model that was the newest when it was asked

All of them yield Plans, and nothing after the clock depends on which policy made them: an aggregation is asynchronous
when its orders start from older versions. The weight of an older update depends on its staleness alone, and so is known
before training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from fedactors.clock.timings.staleness import StalenessWeight
from fedactors.errors import ScenarioError, shortened
from fedactors.options import Options
from fedactors.own_code.user_errors import class_called
from fedactors.plan import Time
from fedactors.scenario.choice import Choice


class Timing(Options):
    """Base of all timing policies; these are the answers of a synchronous one."""

    asynchronous: ClassVar[bool] = False
    """Whether updates may start from older models."""
    weighting: ClassVar[str | None] = None
    """The participation policy where a scenario names none; None: the algorithm's own."""
    says_whom: ClassVar[str] = "timing.concurrency"
    """The key that stands in place of `cohort` where there are no rounds of one server."""
    mixes: ClassVar[bool] = False
    """Whether the server mixes whole models, instead of adding the clients' differences to its own."""

    if TYPE_CHECKING:
        name: str  # no field of this class, because its place among the options is the subclass's choice

    def check_devices(self, devices: int) -> None:
        """Raise ValueError if this policy needs more than `devices` devices."""

    def check_edges(self, of_groups: Sequence[str | None], server: Any) -> None:
        """Raise ValueError if population groups, by number, name an edge, and there are none."""
        for number, edge in enumerate(of_groups):
            if edge is not None:
                raise ValueError(f'population.{number}.edge: timing "{self.name}" has none (accepted: hierarchical)')

    def scheduled(self, rounds: int) -> int:
        """Return how many rounds of a schedule there are in so many aggregations."""
        return rounds

    def weight(self, staleness: int) -> float:
        """Return what an update of this staleness counts, on top of its participation weight."""
        return 1.0

    @property
    def normalised(self) -> bool:
        """Whether weights are scaled so that staleness leaves their sum as it is."""
        return False

    @property
    def deviation(self) -> float:
        """How much of a stale update's weight depends on how far it is from the fresh ones (REFL's beta)."""
        return 0.0


class Synchronous(Timing):
    """Rounds: ask a cohort, wait for it until everybody, a quorum or the deadline, aggregate, again."""

    name: Literal["synchronous"] = "synchronous"


class Asynchronous(Timing):
    """Base of the policies under which clients start whenever one is free.

    `server.deadline` is the deadline of each trip; `server.rounds` counts aggregations.
    """

    asynchronous: ClassVar[bool] = True

    concurrency: int = Field(ge=1, le=10_000_000)
    """Clients that work at the same time (Nguyen et al.: M)."""
    staleness: Annotated[StalenessWeight, Choice("staleness")] = Field(default="constant", validate_default=True)
    """What an update counts that started from an older model."""
    max_staleness: int | None = Field(default=None, ge=0)
    """Most versions that an update may be behind when it is aggregated."""
    on_stale: Literal["drop", "wait"] = "drop"
    """What happens at that bound: the update is dropped, or the server waits for it before it goes on."""

    @model_validator(mode="after")
    def _check_max_staleness(self) -> Asynchronous:
        if self.on_stale == "wait" and self.max_staleness is None:
            raise ValueError("on_stale: wait needs max_staleness")
        return self

    def check_devices(self, devices: int) -> None:
        """Raise ValueError if more clients are at work, or more updates waited for, than there are devices."""
        if max(self.concurrency, self.updates or 0) > devices:
            raise ValueError(
                f"server.timing: {self.concurrency} clients at work and {self.updates or 'no'} updates to wait for"
                f" cannot come from {devices} devices (accepted: at most {devices})"
            )

    @property
    def updates(self) -> int | None:
        """Updates that an aggregation waits for; None: as many as there are when its time has come."""
        return None

    @property
    def every(self) -> Time | None:
        """Virtual time between aggregations; None: whenever there are enough updates."""
        return None

    def weight(self, staleness: int) -> float:
        """Return s(tau). Raises ScenarioError, with the file of its class, if that is no weight."""
        found = self.staleness.factor(staleness)
        if not isinstance(found, Real) or not math.isfinite(found) or found < 0:
            raise ScenarioError(
                f"{class_called(type(self.staleness))}.factor({staleness}): returned {shortened(repr(found))}"
                " (accepted: a finite number, 0 or more)"
            )
        return float(found)

    @property
    def normalised(self) -> bool:
        """Whether weights are scaled so that staleness leaves their sum as it is."""
        return self.staleness.normalised

    @property
    def deviation(self) -> float:
        """Return beta."""
        return self.staleness.deviation
