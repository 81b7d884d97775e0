"""Saves a run in progress: which moments become checkpoints, and what their headers say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from fedactors.fleet.pipeline import Pipeline
from fedactors.scenario.cluster_options import ClusterOptions
from fedactors.simulation.record.run_recorder import RunRecorder
from fedactors.simulation.resume.checkpoint import Checkpoint
from fedactors.simulation.resume.checkpoint_writer import CheckpointWriter


class RunSaver:
    """Saves a run that goes on from the checkpoint `start`.

    Args:
        start: where the run began.
        recorder: counts the rounds that are done.
        pipeline: has the tensors.
        quarantined: clients set aside, by version; it changes while the run goes on.
        cluster: says how often to save.
        note: called with a text if a checkpoint cannot be made because the fleet has lost its tensors.

    """

    def __init__(
        self,
        start: Checkpoint,
        recorder: RunRecorder,
        pipeline: Pipeline,
        quarantined: Mapping[int, Sequence[int]],
        cluster: ClusterOptions,
        note: Callable[[str], None],
    ) -> None:
        self._start = start
        self._recorder = recorder
        self._pipeline = pipeline
        self._quarantined = quarantined
        self._writer = CheckpointWriter(
            recorder.folder.path, cluster.checkpoint_every, start.plans, cluster.checkpoints_kept, note
        )

    def save_if_due(self) -> None:
        """Begin to write a checkpoint of this moment if it is time for one. Raises OSError as `finish` does."""
        if self._writer.due(self._recorder.plans):
            self._begin()

    def save(self) -> None:
        """Write a checkpoint of this moment, if a round was added, and wait for it. Raises OSError as `finish` does."""
        if self._recorder.plans > self._start.plans:
            self._begin()
        self.finish()

    def finish(self) -> None:
        """Wait until what was begun is written. Raises OSError if it could not be."""
        self._writer.finish()

    def close(self) -> None:
        """End the thread that writes."""
        self._writer.close()

    def _begin(self) -> None:
        self._writer.begin(self._header(), partial(self._pipeline.fetch, self._pipeline.snapshot()))

    def _header(self) -> Checkpoint:
        """Return the header of a checkpoint of this moment."""
        recorder = self._recorder
        recorder.folder.sync()  # a checkpoint must not outlive the lines it counts
        return replace(
            self._start,
            plans=recorder.plans,
            digests=recorder.digests,
            metrics_bytes=recorder.folder.metrics_length(),
            quarantined=dict(self._quarantined),
            final=recorder.final,
        )
