"""Samples that are made, or read, when their client is first asked, and kept as long as there is room.

In a large population most clients are never asked. A data set whose clients' samples can be made one client at a time
gives a `ClientSource`. Each host has one `OnDemandSplit`, which says where the samples of a client lie, and makes them
if they are not there. Samples have the same bits wherever and whenever they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedactors.data.base import Data, Int64
from fedactors.data.holdings import Part, raw

ROOM = 2**30  # bytes of samples that a host keeps at most, unless clients that are trained together need more
_NUMBER, _LABEL = 4, 8  # bytes


class ClientSource(Protocol):
    """Training samples by client, without having them all. It travels to every host, so it is small."""

    @property
    def sizes(self) -> Int64:
        """Training samples of each client, `(clients,)`."""
        ...

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        ...

    def samples(self, client: int) -> tuple[NDArray[np.floating], Int64]:
        """Return the inputs `(n, *input_shape)` and labels `(n,)` of one client, always the same."""
        ...

    def tests(self) -> Data:
        """Return the test set, without training samples."""
        ...


@runtime_checkable
class MadeByClient(Protocol):
    """A data set whose clients' samples can be made one client at a time."""

    def on_demand(self, seed: int, clients: int) -> ClientSource:
        """Return what makes the samples of a client; they have the bits of those of `load`."""
        ...


def row_bytes(input_shape: Sequence[int]) -> int:
    """Return the bytes of a sample and its label."""
    return prod(input_shape) * _NUMBER + _LABEL


class OnDemandSplit:
    """Where the samples of each client lie in `x` and `y`; those of a client are made when it is asked for.

    `x` and `y` are a ring: when it is full, the next client's samples take the place of those made longest ago. The
    clients asked for last, `together` of them, are never overwritten by one another.

    Args:
        source: makes the samples.
        together: how many clients must be there at once.
        room: bytes that samples may take; more if `together` clients need more.

    """

    def __init__(self, source: ClientSource, together: int, room: int = ROOM) -> None:
        largest = np.sort(source.sizes)[::-1][:together]
        reach = int(largest.sum() + largest[:1].sum())  # with what one client leaves free at the end of the ring
        total = int(source.sizes.sum())
        self._length = min(total, max(room // row_bytes(source.input_shape), 2 * reach))
        self._reach = 0 if self._length == total else reach  # samples made so long ago may be overwritten soon
        self._source = source
        self._together = together
        self._room = room
        self._made = dict[int, int]()  # when each client's samples were made, in samples made before it
        self._count = 0  # samples made, with what was left free at the end of the ring
        self.x = np.empty((self._length, *source.input_shape), np.float32)
        self.y = np.empty(self._length, np.int64)

    def __reduce__(self) -> tuple[type[OnDemandSplit], tuple[ClientSource, int, int]]:
        """Travel without samples."""
        return OnDemandSplit, (self._source, self._together, self._room)

    @property
    def source(self) -> ClientSource:
        """What makes the samples."""
        return self._source

    def of(self, client: int) -> Int64:
        """Return where the samples of `client` lie, `(n,)`; they are there until `together` others were asked for."""
        size = int(self._source.sizes[client])
        made = self._made.get(client)
        if made is None or made + self._length < self._count + self._reach:
            made = self._make(client, size)
        begin = made % max(1, self._length)
        return np.arange(begin, begin + size)

    def signature(self) -> Iterator[Part]:
        """Yield what it is identified by: how many samples each client has."""
        yield raw(self._source.sizes)

    def _make(self, client: int, size: int) -> int:
        """Make the samples of a client in one piece, and return when."""
        place = self._count % max(1, self._length)
        if place + size > self._length:  # they do not fit before the end of the ring
            self._count += self._length - place
            place = 0
        self.x[place : place + size], self.y[place : place + size] = self._source.samples(client)
        self._made[client] = self._count
        self._count += size
        return self._made[client]
