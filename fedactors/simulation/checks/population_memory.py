"""How many devices can be simulated in the memory that there is."""

from __future__ import annotations

from fedactors.errors import ScenarioError
from fedactors.job_limits import usable_memory

_DEVICE_BYTES = 500  # of a device of the population, at the least


def refuse_too_many(devices: int) -> None:
    """Raise ScenarioError if the clock's columns of so many devices alone take more memory than this process may."""
    most = usable_memory() // _DEVICE_BYTES
    if devices > most:
        raise ScenarioError(f"population: {devices:,} devices (accepted: at most {most:,} in the memory here)")
