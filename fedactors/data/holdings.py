"""Which client holds which samples, as training needs it: a `Split`, or something made from one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Holdings(Protocol):
    """Which client holds which samples."""

    def of(self, client: int) -> NDArray[np.int64]:
        """Return the samples of `client`."""
        ...


@dataclass(frozen=True)
class SharedHoldings:
    """A split in which every client holds the same further samples."""

    own: Holdings
    further: NDArray[np.int64]  # (n_0,)

    def of(self, client: int) -> NDArray[np.int64]:
        """Return the samples of `client`."""
        return np.concatenate([self.own.of(client), self.further])
