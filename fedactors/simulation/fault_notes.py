"""Records the real faults of a run: in its folder, and as notes for the person who watches it."""

from __future__ import annotations

from fedactors.fleet.base import Fault
from fedactors.fleet.messages import Outcomes
from fedactors.learning.training_task import MemoryLimit
from fedactors.simulation.progress import Progress
from fedactors.simulation.record.run_folder import RunFolder


class FaultNotes:
    """The faults of one run, for its `folder` and its `progress`."""

    def __init__(self, folder: RunFolder, progress: Progress) -> None:
        self._folder = folder
        self._progress = progress
        self._limit: MemoryLimit | None = None

    def fault(self, version: int, fault: Fault, *, repeated: bool) -> None:
        """Record a fault in the round of `version`, whose work is `repeated` by another host, or was done already."""
        self._folder.fault({"round": version + 1, "cause": fault.cause, "died": fault.died, "text": fault.text})
        again = "; the work is given to another host" * repeated
        self._progress.note(f"round {version + 1}: {fault.cause}{again}")

    def memory(self, outcomes: Outcomes) -> None:
        """Record that memory was too small, when that begins and when it gets worse."""
        if not outcomes.narrow or outcomes.narrow == self._limit:
            return
        self._limit = outcomes.narrow
        most, same = outcomes.narrow
        bits = "the same bits" if same else "bits may differ from those of whole chunks"
        text = f"memory lacked: a host trains {most} clients at once from now on; {bits}"
        self._folder.fault({"round": outcomes.version + 1, "cause": "OutOfMemory", "died": False, "text": text})
        self._progress.note(f"round {outcomes.version + 1}: {text}")
