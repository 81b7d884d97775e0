"""Records the real faults of a run: in its folder, and as notes for the person who watches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedactors.fleet.base import Fault
from fedactors.fleet.messages import Outcomes
from fedactors.learning.training_task import MemoryLimit
from fedactors.run_files.files import RAY_LOG
from fedactors.simulation.divergence import spike
from fedactors.simulation.progress import Progress
from fedactors.simulation.record.run_folder import RunFolder


class FaultNotes:
    """The faults of one run, for its `folder` and its `progress`; `messages` returns what the machinery said newly."""

    def __init__(self, folder: RunFolder, progress: Progress, messages: Callable[[], list[str]]) -> None:
        self._folder = folder
        self._messages = messages
        self._progress = progress
        self._limit: MemoryLimit | None = None

    def fault(self, version: int, fault: Fault, *, repeated: bool) -> None:
        """Record a fault in the round of `version`, whose work is `repeated`, or was done already."""
        self._folder.fault({"round": version + 1, "cause": fault.cause, "died": fault.died, "text": fault.text})
        written = self.write_messages(fault.details)
        where = f" (what Ray said is in {self._folder.path / RAY_LOG})" * written
        again = "; the work is done again" * repeated
        self._progress.note(f"round {version + 1}: {fault.cause}{again}{where}")

    def write_messages(self, *further: str) -> bool:
        """Write down what the machinery has said, and `further` texts that are not empty; return whether it was any."""
        texts = [text for text in (*self._messages(), *further) if text]
        for text in texts:
            self._folder.ray_log(text)
        return bool(texts)

    def spike(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Say so if the train loss of the last of `rows` of metrics is a jump."""
        if ratio := spike(rows):
            self._progress.note(f"round {rows[-1]['round']}: train loss is {ratio:.1f} times that of the rounds before")

    def memory(self, outcomes: Outcomes) -> None:
        """Record that memory was too small, when that begins and whenever it changes."""
        if not outcomes.narrow or outcomes.narrow == self._limit:
            return
        self._limit = outcomes.narrow
        most, same = outcomes.narrow
        bits = "the same bits" if same else "bits may differ from those of whole chunks"
        text = f"memory lacked: a host trains {most} clients at once from now on; {bits}"
        self._folder.fault({"round": outcomes.version + 1, "cause": "OutOfMemory", "died": False, "text": text})
        self._progress.note(f"round {outcomes.version + 1}: {text}")
