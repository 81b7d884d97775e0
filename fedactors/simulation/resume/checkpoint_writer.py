"""Writes checkpoints beside the training: handles are taken at once, tensors are fetched and written by a thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from fedactors.fleet.base import Fault
from fedactors.fleet.messages import SavedState
from fedactors.simulation.resume.checkpoint import Checkpoint, save

_SECONDS = 300.0  # longest time without a checkpoint, of those spent in rounds


class CheckpointWriter:
    """Saves checkpoints of a run into its folder.

    Args:
        run: the run folder.
        every: rounds between checkpoints; None saves only when the run ends.
        plans: rounds that are saved already.
        kept: checkpoints that stay.
        note: called with a text if a checkpoint cannot be made because the fleet has lost its tensors.

    """

    def __init__(self, run: Path, every: int | None, plans: int, kept: int, note: Callable[[str], None]) -> None:
        self._run = run
        self._every = every
        self._kept = kept
        self._note = note
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._writing: Future[None] | None = None
        self._saved = plans  # rounds of the last checkpoint that was begun
        self._written = plans  # rounds of the last one that is on disk
        self._at = time.monotonic()

    def due(self, plans: int) -> bool:
        """Say whether a checkpoint is to be written after `plans` rounds; not while the last one is being written.

        Raises OSError if that one could not be.
        """
        if self._every is None or (self._writing is not None and not self._writing.done()):
            return False
        self.finish()
        return plans // self._every > self._saved // self._every or time.monotonic() - self._at > _SECONDS

    def begin(self, checkpoint: Checkpoint, fetch: Callable[[], SavedState | None]) -> None:
        """Begin to write a checkpoint, if there is none of that round; `fetch` returns its tensors."""
        self.finish()
        if checkpoint.plans == self._written:
            return
        self._writing = self._thread.submit(self._write, checkpoint, fetch)
        self._saved, self._at = checkpoint.plans, time.monotonic()

    def finish(self) -> None:
        """Wait until what was begun is written. Raises OSError if it could not be."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    def _write(self, checkpoint: Checkpoint, fetch: Callable[[], SavedState | None]) -> None:
        try:
            save(self._run, checkpoint, fetch(), self._kept)
            self._written = checkpoint.plans
        except Fault as fault:
            self._note(f"round {checkpoint.plans}: no checkpoint: {fault}")
