"""Handles of the models of a run: the server's state before each round that a task in flight may start from."""

from __future__ import annotations

from collections.abc import Mapping

from fedactors.fleet.base import Handle
from fedactors.learning.training_task import Vectors


class ModelHandles:
    """The server's state by version: its public part, its private part, and what clients were sent."""

    def __init__(self) -> None:
        self._public: dict[int, Handle[Vectors]] = {}
        self._private: dict[int, Handle[Vectors]] = {}
        self._broadcast: dict[int, Handle[Vectors]] = {}  # only where it is more than the public state

    def set_state(self, version: int, public: Handle[Vectors], private: Handle[Vectors]) -> None:
        """Set the server's state before round `version`."""
        self._public[version] = public
        self._private[version] = private

    def set_sent(self, version: int, sent: Handle[Vectors]) -> None:
        """Set what clients of round `version` are sent, where that is more than the public state."""
        self._broadcast[version] = sent

    def set_older(self, version: int, sent: Handle[Vectors]) -> None:
        """Set what clients were sent in a version from which later tasks still start."""
        self._public[version] = sent

    def public(self, version: int) -> Handle[Vectors]:
        """Return the public state before round `version`."""
        return self._public[version]

    def private(self, version: int) -> Handle[Vectors]:
        """Return the private state before round `version`."""
        return self._private[version]

    def sent(self, version: int) -> Handle[Vectors]:
        """Return what clients of round `version` are sent."""
        return self._broadcast.get(version, self._public[version])

    def sent_until(self, version: int) -> dict[int, Handle[Vectors]]:
        """Return, by version, what clients were sent in earlier versions, and the public state before `version`."""
        earlier = {older: self.sent(older) for older in sorted(self._public) if older < version}
        return earlier | {version: self._public[version]}

    def restore(self, version: int, public: Mapping[int, Handle[Vectors]], private: Handle[Vectors]) -> None:
        """Set the models of a snapshot in the place of all others."""
        self._public = dict(public)
        self._private = {version: private}

    def forget_before(self, version: int) -> None:
        """Drop the models of all versions before `version`."""
        for handles in (self._public, self._private, self._broadcast):
            for older in [one for one in handles if one < version]:
                del handles[older]

    def clear(self) -> None:
        """Drop all models."""
        for handles in (self._public, self._private, self._broadcast):
            handles.clear()
