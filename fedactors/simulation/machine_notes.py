"""What a run says of its machines: real faults, which its folder keeps, and nodes whose processors differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedactors.bits import Bits, processor_kind
from fedactors.fleet.base import Fault, Fleet
from fedactors.fleet.messages import Outcomes
from fedactors.learning.training_task import MemoryLimit
from fedactors.run_files.files import RAY_LOG
from fedactors.simulation.divergence import spike
from fedactors.simulation.progress import Progress
from fedactors.simulation.record.run_folder import RunFolder


class MachineNotes:
    """Notes for the `progress` of one run, and the faults in its `folder`; the run wants such `bits` of its `fleet`."""

    def __init__(self, folder: RunFolder, progress: Progress, fleet: Fleet, bits: Bits) -> None:
        self._folder = folder
        self._progress = progress
        self._fleet = fleet
        self._bits = bits
        self._limit: MemoryLimit | None = None
        self._processors: list[str] = []  # that were named last

    def begin(self) -> None:
        """Say where actors are, and whether processors under them differ."""
        if self._fleet.placement:
            self._progress.note(self._fleet.placement)
        self._compare_processors()

    def after(self, outcomes: Outcomes, rows: Sequence[Mapping[str, Any]]) -> None:
        """Say what is new after a round, the last of `rows` of metrics."""
        self._memory(outcomes)
        self._spike(rows)
        self._compare_processors()

    def fault(self, version: int, fault: Fault, *, repeated: bool) -> None:
        """Record a fault in the round of `version`, whose work is `repeated`, or was done already."""
        self._folder.fault({"round": version + 1, "cause": fault.cause, "died": fault.died, "text": fault.text})
        written = self.write_messages(fault.details)
        where = f" (what Ray said is in {self._folder.path / RAY_LOG})" * written
        again = "; the work is done again" * repeated
        self._progress.note(f"round {version + 1}: {fault.cause}{again}{where}")

    def write_messages(self, *further: str) -> bool:
        """Write down what the machinery has said, and `further` texts that are not empty; return whether it was any."""
        texts = [text for text in (*self._fleet.messages(), *further) if text]
        for text in texts:
            self._folder.ray_log(text)
        return bool(texts)

    def _compare_processors(self) -> None:
        """Say so if bits may depend on which node trains which clients, and again when a node has a further kind."""
        found = sorted({processor_kind(self._bits), *self._fleet.processors(self._bits)})
        if len(found) > max(1, len(self._processors)):
            self._processors = found
            self._progress.note(
                f"cluster.bits: nodes have unlike processors ({' and '.join(kind or 'unknown' for kind in found)}):"
                " bits may depend on which node trains which clients"
            )

    def _spike(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Say so if the train loss of the last of `rows` of metrics is a jump."""
        if ratio := spike(rows):
            self._progress.note(f"round {rows[-1]['round']}: train loss is {ratio:.1f} times that of the rounds before")

    def _memory(self, outcomes: Outcomes) -> None:
        """Record that memory was too small, when that begins and whenever it changes."""
        if not outcomes.memory_limit or outcomes.memory_limit == self._limit:
            return
        self._limit = outcomes.memory_limit
        most, same = outcomes.memory_limit
        bits = "the same bits" if same else "bits may differ from those of whole chunks"
        text = f"memory lacked: a host trains {most} clients at once from now on; {bits}"
        self._folder.fault({"round": outcomes.version + 1, "cause": "OutOfMemory", "died": False, "text": text})
        self._progress.note(f"round {outcomes.version + 1}: {text}")
