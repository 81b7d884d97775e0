"""The seam of trackers: what one has to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Figures = Mapping[str, float]


class Tracker(Protocol):
    """Somewhere to log to.

    It is made before the run starts, and raises UsageError if it cannot be used. All else is called by one thread of
    its own, in this order; what it raises there is a warning.
    """

    name: str

    def begin(self) -> None:
        """Begin to log."""
        ...

    def log(self, round: int, figures: Figures) -> None:
        """Log the figures of a round."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...
