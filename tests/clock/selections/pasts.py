"""What a server has seen of a few devices, for tests: windows in plain numbers, and a time that the test sets."""

import numpy as np

from fedactors.clock import ontime
from fedactors.clock.selections.history import History
from tests.clock.world_builder import availability


class Past:
    """Devices with windows, seen until `now`; it fails if somebody asks for what comes after."""

    def __init__(self, windows, now=0, arrive=0):
        self.now = now
        self._arrive = arrive
        self._a = availability([{"windows": one} for one in windows])

    def arrivals(self, clients):
        return np.full(len(clients), self._arrive)

    def on_between(self, clients, begin, end):
        assert (begin >= self._arrive).all()
        assert (end <= self.now).all()
        return ontime.elapsed(self._a, clients, end) - ontime.elapsed(self._a, clients, begin)


def seen(windows, now=0, arrive=0):
    return History(Past(windows, now, arrive))
