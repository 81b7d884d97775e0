"""A battery that drains with the work that the server gives the device, and is charged at night.

    availability: {name: process, behaviour: battery, arguments: {capacity: 40 kJ, charging: 10, plugged: [22, 7]}}
    energy: {compute: 4 W, down: 1.5 W, up: 1.5 W, idle: 0.1 W}

The level falls by the watts of what the device is doing and rises while it is plugged in. They are those of the group's
`energy`, which counts the joules of trips by the same numbers; a group without it may give `compute`, `radio` and
`idle` as arguments, in watts. Below `low` of the capacity the device is off; from `resume` on it is on again. Between
changes of stage the level is linear, so the instants at which it crosses a bound are exact, rounded up to a nanosecond.
"""

from __future__ import annotations

import math

import simpy
from typing_extensions import override

from fedactors.clock.behaviours.base import BehavingDevice, Behaviour, Play
from fedactors.plan import SECOND
from fedactors.scenario.costs.power_units import MICRO
from fedactors.scenario.units import energy

_JOULE = energy("1 J")
_HOURS_PER_DAY = 24.0
_WATTS = {"compute": 4.0, "radio": 1.5, "idle": 0.1}


class Battery(Behaviour):
    """Batteries of `capacity`; consumption and charging in watts, `plugged` from one hour of the day until another."""

    def __init__(
        self,
        capacity: str = "40 kJ",
        compute: float | None = None,
        radio: float | None = None,
        idle: float | None = None,
        charging: float = 10.0,
        plugged: tuple[float, float] = (22.0, 7.0),
        low: float = 0.15,
        resume: float = 0.3,
    ) -> None:
        self.capacity = energy(capacity) / _JOULE
        self._given = {"compute": compute, "radio": radio, "idle": idle}
        self.charging = charging
        self._always = tuple(plugged) == (0, _HOURS_PER_DAY)
        self.plug, self.unplug = (0.0, 0.0) if self._always else _hours(plugged)
        self.low = low * self.capacity
        self.resume = resume * self.capacity
        least = min([charging, *(value for value in self._given.values() if value is not None)])
        if not (self.capacity > 0 and 0 <= low < resume <= 1 and least >= 0):
            raise ValueError(
                "found impossible figures (accepted: capacity above 0, watts >= 0, 0 <= low < resume <= 1)"
            )

    @override
    def check_consumption(self) -> None:
        given = [name for name, value in self._given.items() if value is not None]
        if given and self.consumption is not None and self.consumption.has_watts:
            raise ValueError(
                f"found watts for {', '.join(given)} in the arguments and others in the group's energy (accepted:"
                " energy alone, by which trips and the battery are counted)"
            )

    @property
    def watts(self) -> dict[str, float]:
        """Consumption by stage, of the group's energy, the arguments, or phones in general."""
        if self.consumption is not None and self.consumption.has_watts:
            used = self.consumption
            stages = {"idle": used.idle, "download": used.down, "upload": used.up, "compute": used.compute}
            return {"off": 0.0, **{stage: power / MICRO for stage, power in stages.items()}}
        of = {name: _WATTS[name] if value is None else value for name, value in self._given.items()}
        radio = of["radio"]
        return {"off": 0.0, "idle": of["idle"], "download": radio, "upload": radio, "compute": of["compute"]}

    @override
    def play(self, device: BehavingDevice) -> Play:
        """Follow the level from bound to bound; a device begins with a level of its own, by lot."""
        watts = self.watts
        level = float(device.random.uniform(self.resume, self.capacity))
        on = True
        plugged = self._plugged_at_midnight
        edge = self._edge(device, plugged=plugged)
        while True:
            rate = (self.charging if plugged else 0.0) - watts[device.stage]
            began = device.now
            crossing = self._crossing(level, rate, on=on)
            bound = [device.timeout(crossing)] if crossing is not None else []
            yield device.env.any_of([edge, device.changed(), *bound])
            level = min(self.capacity, level + rate * (device.now - began) / SECOND)
            if edge.processed:
                plugged = not plugged
                edge = self._edge(device, plugged=plugged)
            if bound and bound[0].processed:
                on = not on
                if on:
                    device.on()
                else:
                    device.off()

    @property
    def _plugged_at_midnight(self) -> bool:
        return self.plug == 0 or self.plug > self.unplug > 0

    def _edge(self, device: BehavingDevice, *, plugged: bool) -> simpy.Event:
        """Return an event when it is plugged in next, or no longer; one that never happens if it always is."""
        if self._always:
            return device.env.event()
        return device.at_hour(self.unplug if plugged else self.plug)

    def _crossing(self, level: float, rate: float, *, on: bool) -> int | None:
        """Return in how many ns the level reaches the bound at which the device goes off, or on again; None: never."""
        if on and rate < 0:
            return max(0, math.ceil((level - self.low) / -rate * SECOND))
        if not on and rate > 0:
            return max(0, math.ceil((self.resume - level) / rate * SECOND))
        return None


def _hours(plugged: tuple[float, float]) -> tuple[float, float]:
    """Return both hours, midnight as 0. Raises ValueError if they are none, or the same."""
    plug, unplug = (hour % _HOURS_PER_DAY for hour in plugged)
    if plug == unplug or not all(0 <= hour <= _HOURS_PER_DAY for hour in plugged):
        raise ValueError(f"found plugged {list(plugged)} (accepted: two different hours from 0 to 24)")
    return plug, unplug
