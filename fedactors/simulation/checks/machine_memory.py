"""The memory of this machine, and how many devices can be simulated in it."""

from __future__ import annotations

import os

from fedactors.errors import ScenarioError

_DEVICE_BYTES = 500  # of a device of the population, at the least


def machine_bytes() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def refuse_too_many(devices: int) -> None:
    """Raise ScenarioError if the clock's columns of so many devices alone take more than this machine's memory."""
    most = machine_bytes() // _DEVICE_BYTES
    if devices > most:
        raise ScenarioError(f"population: {devices:,} devices (accepted: at most {most:,} on this machine)")
