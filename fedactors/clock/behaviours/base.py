"""What a behaviour is, and what it sees and says of its device.

    class Commuter(Behaviour):
        def play(self, device):
            while True:
                yield device.timeout("8 h")
                device.off()
                yield device.timeout("30 min")
                device.on()

`play` runs once for each device of a group, as a SimPy process: whatever it yields is a SimPy event. Times are integers
in nanoseconds, or texts with a unit. Random numbers come from `device.random` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import simpy

from fedactors.plan import Phase, Time
from fedactors.scenario.costs.energy_options import Consumption
from fedactors.scenario.units import duration
from fedactors.streams import Purpose, stream

if TYPE_CHECKING:
    from fedactors.clock.events.device import EventDevice

Play = Generator[simpy.Event, Any, None]


class Behaviour(ABC):
    """How the devices of one group behave; there is one object for each group of a run."""

    consumption: Consumption | None = None
    """What the scenario says that devices of the group consume (`population.*.energy`), if it does."""

    arrives: ClassVar[bool] = False
    """Whether a device belongs to the population only from when its behaviour says `arrive`."""

    def begin(self, env: simpy.Environment, devices: int) -> None:  # noqa: B027 (most behaviours share nothing)
        """Make what the `devices` of the group share, such as `simpy.Resource(env, 2)`. Called once, at time 0."""

    def check_consumption(self) -> None:  # noqa: B027 (most behaviours have nothing to check)
        """Check that the arguments go with `consumption`. Raises ValueError, or TypeError, if they do not."""

    @abstractmethod
    def play(self, device: BehavingDevice) -> Play:
        """Drive one device: yield SimPy events, and say `on`, `off`, `arrive` and `depart` of it in between."""

    def line(self, device: BehavingDevice) -> simpy.Resource | None:
        """Return what a download or upload of the device has to hold while it lasts; None: nothing."""
        return None


class BehavingDevice:
    """One device, as its behaviour sees it. It is on from the beginning, until the behaviour says `off`."""

    def __init__(self, device: EventDevice, number: int, seed: int) -> None:
        self._device = device
        self._world = device.world
        self.number = number
        """Number of the device in its group, from 0."""
        self._willing = True  # what the behaviour said last, which may take effect later in this instant
        self.random: np.random.Generator = stream(seed, Purpose.BEHAVIOUR, device.client)
        """Random numbers of this device: the same in every run with the same seed."""

    @property
    def env(self) -> simpy.Environment:
        """SimPy's environment."""
        return self._world.env

    @property
    def now(self) -> Time:
        """Virtual time, ns since the beginning of the run."""
        return self._world.now

    @property
    def stage(self) -> str:
        """What the device is doing: "off", "idle", "download", "compute" or "upload"."""
        return self._device.stage if self._willing and self._device.on else "off"

    def timeout(self, delay: int | str) -> simpy.Event:
        """Return an event `delay` from now, ns or a text such as "90s". Raises ValueError if it is no duration."""
        return self.env.timeout(duration(delay) if isinstance(delay, str) else int(delay))

    def at_hour(self, hour: float) -> simpy.Event:
        """Return an event at the next time at which the clock shows `hour` (0 to 24); time 0 is midnight."""
        day = duration("1 d")
        wait = (round(hour * duration("1 h")) - self.now) % day
        return self.env.timeout(wait or day)

    def changed(self) -> simpy.Event:
        """Return an event at the next change of `stage`."""
        return self._device.switched

    def on(self) -> None:
        """Let the device be reached from now on."""
        self._be(Phase.ON, willing=True)

    def off(self) -> None:
        """Let the device not be reached from now on; a step that ends at this nanosecond has been done."""
        self._be(Phase.OFF, willing=False)

    def arrive(self) -> None:
        """Let the device join the population."""
        self._say(Phase.ARRIVE, "here", value=True)

    def depart(self) -> None:
        """Let the device leave the population for good."""
        self._say(Phase.DEPART, "gone", value=True)

    def _be(self, phase: Phase, *, willing: bool) -> None:
        if willing != self._willing:
            self._willing = willing
            self._say(phase, "willing", value=willing)

    def _say(self, phase: Phase, what: str, *, value: bool) -> None:
        event = self._world.at(self._world.now, phase)
        event.callbacks.append(partial(self._set, what, value))

    def _set(self, what: str, value: bool, event: simpy.Event) -> None:
        self._device.set(what, value=value)
