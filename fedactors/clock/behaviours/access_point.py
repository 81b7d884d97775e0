"""Devices that share an access point: only so many of them can transfer at a time, the others wait for their turn.

    availability: {name: process, behaviour: access_point, arguments: {devices: 4, at_once: 1}}

A transfer that is interrupted because its device goes off gives up its turn.
"""

from __future__ import annotations

import simpy
from typing_extensions import override

from fedactors.clock.behaviours.base import BehavingDevice, Behaviour, Play


class AccessPoint(Behaviour):
    """Access points of `devices` devices each, neighbours in the group, with `at_once` transfers at a time."""

    def __init__(self, devices: int = 4, at_once: int = 1) -> None:
        if devices < 1 or at_once < 1:
            raise ValueError(f"found {devices} devices and {at_once} at once (accepted: both at least 1)")
        self.devices = devices
        self.at_once = at_once
        self._points: list[simpy.Resource] = []

    @override
    def begin(self, env: simpy.Environment, devices: int) -> None:
        """Make the access points."""
        self._points = [simpy.Resource(env, self.at_once) for _ in range(-(-devices // self.devices))]

    @override
    def play(self, device: BehavingDevice) -> Play:
        """Stay on."""
        yield from ()

    @override
    def line(self, device: BehavingDevice) -> simpy.Resource | None:
        """Return the access point of the device."""
        return self._points[device.number // self.devices]
