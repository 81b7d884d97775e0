"""Users with a daily rhythm: a device is on in the night, from about one hour of its day until another.

availability: {name: process, behaviour: diurnal, arguments: {on: 22, off: 7, spread: 1.5}}
"""

from __future__ import annotations

import simpy
from typing_extensions import override

from fedactors.clock.behaviours.base import BehavingDevice, Behaviour, Play
from fedactors.scenario.units import duration

_DAY = 24.0


class Diurnal(Behaviour):
    """On from hour `on` until hour `off`, each day earlier or later by normal draws of `spread` hours.

    Each of them is a number of hours, or a duration such as "7h30min".
    """

    def __init__(self, on: float | str = 22.0, off: float | str = 7.0, spread: float | str = 1.0) -> None:
        begin, end, wide = (_hours(value) for value in (on, off, spread))
        if not (0 <= begin < _DAY and 0 <= end < _DAY and begin != end and wide >= 0):
            raise ValueError(f"found on {on}, off {off}, spread {spread} (accepted: two different hours, spread >= 0)")
        self.hours = (begin, end)
        self.spread = wide

    @override
    def play(self, device: BehavingDevice) -> Play:
        """Go on and off once a day; a run begins at midnight."""
        on, off = self.hours
        night = on > off
        if not night:
            device.off()
        while True:
            yield self._about(device, off if night else on)
            if night:
                device.off()
            else:
                device.on()
            night = not night

    def _about(self, device: BehavingDevice, hour: float) -> simpy.Event:
        """Return an event at about the next `hour`, at most half of the way to the other one earlier or later."""
        apart = min(abs(self.hours[0] - self.hours[1]), _DAY - abs(self.hours[0] - self.hours[1])) / 2
        drawn = float(device.random.normal(0.0, self.spread)) if self.spread else 0.0
        shift = max(-0.9 * apart, min(0.9 * apart, drawn))
        return device.timeout(self._until(device, hour, shift))

    @staticmethod
    def _until(device: BehavingDevice, hour: float, shift: float) -> int:
        """Return the ns until `hour` of the clock, moved by `shift` hours; 0 if that was before the run."""
        ns = duration("1 h")
        wait = (round(hour * ns) - device.now) % duration("1 d")
        return max(0, wait + round(shift * ns))


def _hours(value: float | str) -> float:
    """Return hours, or a duration in hours. Raises ValueError if a text is no duration."""
    return duration(value) / duration("1 h") if isinstance(value, str) else value
