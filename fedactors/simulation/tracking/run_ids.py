"""Under which ids a run is known elsewhere: kept in its folder, so that it goes on as the same one there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedactors.errors import RunFolderError
from fedactors.run_files.files import object_of
from fedactors.run_files.writing import write

TRACKERS = "trackers.json"


class RunIds:
    """The ids of the run in `folder`, by the names of trackers."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TRACKERS

    def of(self, tracker: str) -> str:
        """Return the id under which a tracker knows the run; empty if it does not."""
        found = self._all().get(tracker)
        return found if isinstance(found, str) else ""

    def keep(self, tracker: str, run: str) -> None:
        """Keep the id under which a tracker knows the run. Raises OSError if the disk does not take it."""
        if self.of(tracker) != run:
            write(self._path, json.dumps({**self._all(), tracker: run}, indent=1) + "\n")

    def _all(self) -> dict[str, Any]:
        """Return what is in the file; nothing if it is not there, or damaged."""
        try:
            return dict(object_of(self._path))
        except RunFolderError:
            return {}
