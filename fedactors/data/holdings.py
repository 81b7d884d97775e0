"""Which client holds which samples, as training needs it: a `Split`, or something made from one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Part = bytes | memoryview  # of what data are identified by


class Holdings(Protocol):
    """Which client holds which samples."""

    def of(self, client: int) -> NDArray[np.int64]:
        """Return the samples of `client`."""
        ...


class RunHoldings(Holdings, Protocol):
    """Which client holds which samples throughout a run."""

    def signature(self) -> Iterator[Part]:
        """Yield what it is identified by."""
        ...


def raw(values: NDArray[Any]) -> memoryview:
    """Return the bytes of an array, `(bytes,)`, which are not copied if they lie in a row."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


@dataclass(frozen=True)
class SharedHoldings:
    """A split in which every client holds the same further samples."""

    own: RunHoldings
    further: NDArray[np.int64]  # (n_0,)

    def of(self, client: int) -> NDArray[np.int64]:
        """Return the samples of `client`."""
        return np.concatenate([self.own.of(client), self.further])

    def signature(self) -> Iterator[Part]:
        """Yield what it is identified by."""
        yield from self.own.signature()
        yield raw(self.further)
