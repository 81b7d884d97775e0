"""Executes chunks on one device: the only place where the local steps of clients are taken."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from fedactors.engines.added_loss import AddedLoss
from fedactors.engines.base import Engine
from fedactors.engines.client_batch import BatchPlan, ClientBatch, UpdateSums
from fedactors.engines.engine_choice import choose
from fedactors.engines.micro_batching import MicroBatching, if_memory_allows
from fedactors.in_place import unchanged
from fedactors.learning.algorithm import Algorithm, ClientResult
from fedactors.learning.batch_planner import BatchPlanner
from fedactors.learning.chunks import groups, joined
from fedactors.learning.client_gradients import ClientGradients
from fedactors.learning.device_samples import on_device
from fedactors.learning.own_models import own_rows
from fedactors.learning.personal_parts import PersonalParts
from fedactors.learning.row_vectors import column, gathered, kept_rows, own_tensors, parts_of, shares
from fedactors.learning.sent_examples import SentExamples
from fedactors.learning.summing import client_losses, finite, mean_losses
from fedactors.learning.traffic.downlink import as_sent
from fedactors.learning.traffic.uploads import uploaded
from fedactors.learning.training_task import (
    BadUpdates,
    Chunk,
    ChunkResult,
    MemoryLimit,
    TrainingData,
    TrainingTask,
    Vectors,
)
from fedactors.workload import Workload

_MOST_STEPS = 20  # of trips whose places in memory are tried as they are


def check_engine(task: TrainingTask, device: str) -> None:
    """Raise ScenarioError if the engine that `task` names does not support its local steps on a device type."""
    choose(task.local_work, device, task.engine)


class _Ahead(NamedTuple):
    """What was done for a chunk before its models arrived."""

    chunk: Chunk
    plan: BatchPlan
    prepared: object | None  # by the engine


class Trainer:
    """Trains chunks of one task on one device ("cpu" or "cuda").

    An `engine` takes the place of the one that is chosen for the task. Raises ScenarioError if the task names an engine
    that does not support it.
    """

    def __init__(
        self, task: TrainingTask, samples: TrainingData, device: str = "cpu", engine: Engine | None = None
    ) -> None:
        self._task = task
        self._work = task.local_work
        self._device = torch.device(device)
        self._engine = engine or choose(self._work, device, task.engine)
        self._batching = MicroBatching(self._engine)
        self._dataset = on_device(samples, task, self._engine, self._device)
        self._central = None if samples.central is None else SentExamples(task, samples.central, self._device)
        self._planner = BatchPlanner(task, samples, self._device)
        self.gradients = ClientGradients(self._dataset, self._planner)
        self._personal = PersonalParts(task.personal, self._device)
        self._sums_gradients = (
            task.algorithm.wants_gradient_sum and self._engine.sums_gradients and self._work.plain_sgd
        )
        self._adds_up = self._engine.sums_updates and self._wants_sums()
        self._max_rows = self._engine.max_rows(self._dataset) if self._may_join() else 0
        self._batch_invariant = dict[tuple[Workload, int | None], bool]()
        self._ahead: _Ahead | None = None

    def _wants_sums(self) -> bool:
        """Whether nothing is wanted of a client's trip but its share of a weighted sum of differences."""
        if self._device.type != "cpu" or self._task.model.buffer_values:
            return False
        task = self._task
        differences = type(task.algorithm).upload is Algorithm.upload and not task.algorithm.unweighted
        rows = task.aggregation is not None or task.uplink is not None or task.attackers  # each client's are wanted
        return differences and not task.keeps_state and not rows

    def _may_join(self) -> bool:
        """Whether chunks may be trained together: what clients keep is loaded and stored a chunk at a time."""
        return self._device.type == "cpu" and self._work.plain_sgd and not self._work.keeps_state

    def learn(
        self,
        chunk: Chunk,
        sent: Sequence[Vectors],
        kept: Sequence[Vectors | None] = (),
        following: Chunk | None = None,
    ) -> ChunkResult:
        """Train the trips of `chunk` from the models `sent`, and return the weighted sums of what clients upload.

        `kept` is what each client kept from its last trip, None at its first; empty if the algorithm keeps nothing.
        While a GPU computes, the samples of the `following` chunk are shuffled.
        """
        (learned,) = self.learn_together([chunk], sent, kept, following)
        return learned

    def groups(self, chunks: Sequence[Chunk]) -> list[list[Chunk]]:
        """Return runs of chunks that are trained together: the rows of all of them in each call of the engine.

        Their bits are those that they have one by one; where that does not hold on this processor, chunks stay apart.
        """
        found = groups(chunks, self._max_rows, self._task.workloads)
        apart = [[chunk] for chunk in chunks]
        return found if len(found) == len(apart) or all(map(self._is_batch_invariant, found)) else apart

    def prepare(self, chunks: Sequence[Chunk]) -> None:
        """Do what can be done for the first of the `groups` of `chunks`, trained next, before their models arrive.

        If memory lacks, that is left to `learn_together`.
        """
        if not chunks:
            return
        chunk = joined(self.groups(chunks)[0])
        plan = self._planner.plan(chunk)
        prepared = None
        if self._device.type == "cpu" and not self._batching.at_once:
            prepared = if_memory_allows(lambda: self._engine.prepare(self._dataset, plan))
        self._ahead = _Ahead(chunk, plan, prepared)

    def _is_batch_invariant(self, group: Sequence[Chunk]) -> bool:
        """Whether the rows of a group have bits that do not depend on their places: in all trips, or in whole ones."""
        work = self._largest(group[0])
        whole = max(group[0].steps) == work.wanted <= _MOST_STEPS
        return self._tried(work) or (whole and self._tried(work, work.wanted))

    def _tried(self, work: Workload, steps: int | None = None) -> bool:
        """Return what the engine finds out about the places of rows; it tries once for each workload."""
        if (work, steps) not in self._batch_invariant:
            found = if_memory_allows(lambda: self._engine.batch_invariant(self._work, self._dataset, work, steps))
            if found is None:
                self._max_rows = 0
            self._batch_invariant[work, steps] = found is True
        return self._batch_invariant[work, steps]

    def _largest(self, chunk: Chunk) -> Workload:
        return max(self._planner.works(chunk), key=lambda work: (work.batch, work.wanted))

    def learn_together(
        self,
        chunks: Sequence[Chunk],
        sent: Sequence[Vectors],
        kept: Sequence[Vectors | None] = (),
        following: Chunk | None = None,
        *,
        add_up: bool = True,
    ) -> list[ChunkResult]:
        """Train several chunks at once, one of the `groups`; return what each learned, as `learn` would.

        The engine may `add_up` updates by itself. If clients keep something, there is one chunk only.
        """
        chunk = joined(chunks)
        bases = [own_tensors(as_sent(vectors), self._device) for vectors in sent]
        given = gathered(bases, chunk.model_indices) | shares(self._task, chunk, self._device)
        held = kept_rows(kept, self._task.algorithm.keeps if kept else (), self._task.model.parameters, self._device)
        rows = self._rows(chunks, chunk, self._personal.starts(given["x"], kept, len(chunk.clients)))
        rows = self._directed(rows, given, held)
        if self._adds_up and add_up:
            return self._added_up(chunks, sent, rows)
        with unchanged(f"engine {type(self._engine).__name__}", sent=given):
            deltas, losses, state, gradients = self._batching.train(self._dataset, rows)
        if following is not None:
            self._ahead = _Ahead(following, self._planner.plan(following), None)
        steps = column(chunk.steps, self._device)
        gradients = None if gradients is None else self._personal.shared(gradients)
        result = ClientResult(
            start=given["x"].expand_as(deltas),
            delta=self._personal.shared(deltas),
            sent=given,
            steps=steps,
            lr=chunk.lr,
            kept=held,
            gradient=self._first_gradient(rows) if self._task.algorithm.wants_gradient else None,
            state=state,
            gradients=gradients,
            own=self._own(rows, kept),
            loss=mean_losses(losses, steps),
            start_loss=self._start_loss(chunk, rows),
            samples=column([work.held for work in rows.works], self._device),
            buffers=self._task.model.buffer_values,
        )
        mine = self._personal.of(rows.starts, deltas)
        done = uploaded(self._task, chunks, result, losses, mine, kept)
        return [self._learned(*one) for one in done]

    def _start_loss(self, chunk: Chunk, rows: ClientBatch) -> Tensor | None:
        """Return the loss of all samples of each client where its trip begins, (clients, 1), if that is used."""
        return self.gradients.start_losses(chunk, rows.starts) if self._task.algorithm.wants_start_loss else None

    def _own(self, rows: ClientBatch, kept: Sequence[Vectors | None]) -> Tensor | None:
        """Return each client's own model after the trip, if the algorithm has clients train one."""
        pull = self._task.algorithm.own_pull
        if pull is None:
            return None
        further = own_rows(rows, kept, pull)
        return further.starts + self._batching.train(self._dataset, further).deltas

    def _directed(self, rows: ClientBatch, given: Mapping[str, Tensor], held: Mapping[str, Tensor]) -> ClientBatch:
        """Return `rows` with what the algorithm adds to gradients and losses, and the optimiser with its state."""
        algorithm = self._task.algorithm
        with unchanged(f"algorithm {algorithm.name}", sent=given):
            correction = algorithm.correction(given, held)
            moments = algorithm.moments(given, held)
            prox = algorithm.prox_of(given)
        zeros = rows.starts.new_zeros(1)
        return replace(
            rows,
            corrections=None if correction is None else correction.expand_as(rows.starts),
            prox=prox,
            optimizer=self._work.optimizer,
            state={name: moments.get(name, zeros).expand_as(rows.starts) for name in self._work.optimizer.vectors},
            clip=self._work.clip,
            added_loss=None if self._work.added_loss is None else AddedLoss(self._work.added_loss, rows.starts),
            sums_gradients=self._sums_gradients,
        )

    def _written_out(self, chunk: Chunk, sent: Sequence[Vectors]) -> ChunkResult:
        """Train a chunk once more, so that bad updates can be told from good ones."""
        (learned,) = self.learn_together([chunk], sent, add_up=False)
        return learned

    def _added_up(self, chunks: Sequence[Chunk], sent: Sequence[Vectors], rows: ClientBatch) -> list[ChunkResult]:
        """Return what chunks learned, with updates added up by the engine; a chunk with a bad sum is trained again."""
        weights = [weight for chunk in chunks for weight in chunk.weights]
        total = UpdateSums({}, weights, range(len(weights)))
        losses = self._batching.train(self._dataset, replace(rows, sums=total)).losses
        learned = [
            self._learned(chunk, {"delta": total.of(part, rows.starts.shape[1]).numpy()}, (), its_losses)
            for part, (chunk, _, its_losses) in enumerate(parts_of(chunks, losses))
        ]
        return [
            one if math.isfinite(one.loss) and finite(one.sums) else self._written_out(chunk, sent)
            for chunk, one in zip(chunks, learned, strict=True)
        ]

    def _learned(
        self, chunk: Chunk, sums: Vectors, bad: BadUpdates, losses: Tensor, kept: tuple[Vectors, ...] = ()
    ) -> ChunkResult:
        each = client_losses(chunk, losses) if self._task.returns_client_losses else ()
        limit = self._memory_limit(chunk)
        return ChunkResult(
            place=chunk.place, sums=sums, loss=float(losses.sum()), bad=bad, kept=kept, losses=each, memory_limit=limit
        )

    def limit(self, rows: int) -> None:
        """Train at most so many clients at once from now on."""
        self._batching.limit(rows)

    def _memory_limit(self, chunk: Chunk) -> MemoryLimit | None:
        """Return how many clients are trained at once, if memory lacked for all of `chunk`."""
        most = self._batching.at_once
        if most is None:
            return None
        work = self._largest(chunk)
        same = if_memory_allows(lambda: self._engine.parts_keep_bits(self._work, self._dataset, work))
        return MemoryLimit(most, same is True)

    def _first_gradient(self, rows: ClientBatch) -> Tensor:
        """Return the gradient of each row's first batch at its start, as SGD takes it; zeros where no step is taken."""
        return -self._personal.shared(self._batching.train(self._dataset, rows.first_step()).deltas)

    def _rows(self, chunks: Sequence[Chunk], chunk: Chunk, starts: Tensor) -> ClientBatch:
        """Return the trips of `chunks`, which `chunk` has all of, as rows that start from `starts`, by plain SGD."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead.chunk != chunk:
            ahead = _Ahead(chunk, self._planner.plan(chunk), None)
        plan = ahead.plan
        return ClientBatch(
            clients=plan.clients,
            steps=plan.steps,
            works=plan.works,
            order=plan.order,
            keys=plan.keys,
            starts=starts.expand(len(chunk.clients), -1),
            corrections=None,
            prox=self._work.prox,
            lr=chunk.lr,
            phases=self._personal.phases(self._task.personal_steps, chunk.clients, self._task.model.parameters),
            weight=self._work.loss_weight,
            chunks=[number for number, one in enumerate(chunks) for _ in one.clients],
            model_indices=range(len(chunk.clients)) if self._personal.some else chunk.model_indices,
            second_loss=None if self._central is None else self._central.to(chunk),
            prepared=[] if ahead.prepared is None else [ahead.prepared],
        )
