"""SimPy's environment with our order of events that fall on the same nanosecond."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

import simpy

from fedactors.plan import NEVER, Phase, Time

Waits = Generator[simpy.Event, Any, None]
_AFTER_SIMPY = 10  # SimPy's own priorities are 0 and 1: starts and interrupts of processes come first


class At(simpy.Event):
    """An event at an absolute instant, in the order of `Phase` among those of the same nanosecond.

    SimPy fires equal times in order of creation, and a deadline is created before the uploads it waits for. Raises
    ValueError if `time`, ns, has passed.
    """

    def __init__(self, env: simpy.Environment, time: Time, phase: Phase) -> None:
        super().__init__(env)
        if time < env.now:
            raise ValueError(f"an event at {time} ns, when it is {env.now} ns already")
        self._ok, self._value = True, None
        env.schedule(self, priority=cast(Any, _AFTER_SIMPY + phase), delay=time - env.now)


class VirtualTime:
    """Time that passes from event to event."""

    def __init__(self) -> None:
        self.env = simpy.Environment(initial_time=0)

    @property
    def now(self) -> Time:
        """The present, ns."""
        return int(self.env.now)

    def at(self, time: Time, phase: Phase) -> At:
        """Return an event at `time`."""
        return At(self.env, time, phase)

    def until(self, time: Time, phase: Phase, *others: simpy.Event) -> Waits:
        """Wait for `time` (NEVER: for ever), or for one of the `others` before it; ends in `phase` of its instant."""
        if not others:
            yield self.at(time, phase)
            return
        timer = [self.at(time, phase)] if time < NEVER else []
        yield simpy.AnyOf(self.env, [*timer, *others])
        if not (timer and timer[0].processed):
            yield self.at(self.now, phase)

    def step(self) -> None:
        """Let the next event happen."""
        self.env.step()
