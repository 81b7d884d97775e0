"""When one device was on until now, noted as it comes and goes, with searches that take a logarithm of the windows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from fedactors.plan import NEVER, Time


class SeenWindows:
    """The half-open windows of a device, in order of time; one that begins where another ends goes on with it."""

    def __init__(self) -> None:
        self._on: list[Time] = []  # of the windows that have ended
        self._off: list[Time] = []
        self._before: list[Time] = []  # on-time before each of them, ns
        self._since: Time | None = None  # when the device came on, if it is on

    def note(self, now: Time, *, on: bool) -> None:
        """Note whether the device is on from now on."""
        if on and self._since is None:
            self._since = self._reopened() if self._off and self._off[-1] == now else now
        elif not on and self._since is not None:
            if now > self._since:
                self._before.append(self.elapsed(self._since))
                self._on.append(self._since)
                self._off.append(now)
            self._since = None

    def elapsed(self, time: Time) -> Time:
        """Return the on-time before `time`, which is not after now, ns."""
        if self._since is not None and time > self._since:
            return self.elapsed(self._since) + time - self._since
        k = bisect_right(self._on, time) - 1
        return self._before[k] + min(time, self._off[k]) - self._on[k] if k >= 0 else 0

    def spans(self, time: Time) -> Iterator[tuple[Time, Time]]:
        """Yield when the device was on from `time` on, as (on, off) in order; the window of now ends never."""
        for k in range(bisect_right(self._off, time), len(self._off)):
            yield max(self._on[k], time), self._off[k]
        if self._since is not None:
            yield max(self._since, time), NEVER

    def _reopened(self) -> Time:
        """Take back that the last window has ended; return when it began."""
        self._off.pop()
        self._before.pop()
        return self._on.pop()
