"""What the server wants of one client in one trip."""

from __future__ import annotations

from dataclasses import dataclass

from fedactors.plan import Time
from fedactors.workload import Workload


@dataclass(frozen=True)
class TripRequest:
    """What one client is asked to do."""

    client: int
    base: int
    deadline: Time  # NEVER: as long as it needs
    work: Workload
    per_sample: int  # ns
    latency: int  # ns
    down: int  # bytes
    up: int  # bytes
    by_integral: bool = False  # bytes that have moved are counted by the integral of the link's rate
    linked: bool = True  # False: a sampled device that cannot be reached in this round
