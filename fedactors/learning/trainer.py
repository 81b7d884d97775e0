"""Executes chunks on one device: the only place where local steps are taken, whoever asks for them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.data import batches
from fedactors.data.partitions.reassignment import ReassignedSplit
from fedactors.engines import grams
from fedactors.engines.base import NO_STATE, BatchPlan, ClientBatch, DeviceDataset, UpdateSums
from fedactors.engines.batch_invariance import steady
from fedactors.engines.engine_choice import adds_up, engine_of, prepare_of, rows_at_once, spans
from fedactors.engines.full_gradient import full_gradient
from fedactors.engines.grams import Grams
from fedactors.engines.micro_batching import MicroBatching, out_of_memory
from fedactors.learning.algorithm import Algorithm, ClientResult
from fedactors.learning.chunks import groups, joined
from fedactors.learning.dissimilarity import GradientSum, gradient_sum
from fedactors.learning.sent_examples import SentExamples
from fedactors.learning.summing import client_losses, finite, summed
from fedactors.learning.training_task import Chunk, ChunkResult, MemoryLimit, TrainingData, TrainingTask, Vectors
from fedactors.models import dropout
from fedactors.models.layers import Dropout
from fedactors.optim.client_optimizers import PLAIN
from fedactors.streams import Purpose, Streams
from fedactors.workload import Workload


class Trainer:
    """Trains chunks of one lesson on one device ("cpu" or "cuda")."""

    def __init__(self, task: TrainingTask, samples: TrainingData, device: str = "cpu") -> None:
        self._task, self._split, self._variants = task, samples.split, samples.variants
        self._device = torch.device(device)
        x, y = (torch.from_numpy(part).to(self._device) for part in (samples.x, samples.y))
        self._central = None if samples.central is None else SentExamples(task, samples.central, self._device)
        spanned, algorithm = spans(task, device), task.algorithm
        same = not isinstance(self._split, ReassignedSplit) and self._variants is None and grams.fit(task.workloads)
        kept = Grams(x.flatten(1), self._split) if spanned and same else None
        self._dataset = DeviceDataset(task.model, x, y, kept)
        differences = type(algorithm).upload is Algorithm.upload and not algorithm.keeps and not algorithm.plain
        self._train, self._steady = MicroBatching(engine_of(task, device)), dict[Workload, bool]()
        self._adds_up = differences and adds_up(task, device)
        self._anew = spanned and kept is None  # inner products are worked out for the longest trip there is
        self._at_once = 0 if self._anew else rows_at_once(task, device)
        self._ahead: tuple[Chunk, BatchPlan, Any] | None = None  # what was prepared: for which chunk, and by the engine
        self._has_dropout = any(isinstance(layer, Dropout) for layer in task.model.layers)

    def learn(
        self,
        chunk: Chunk,
        sent: Sequence[Vectors],
        kept: Sequence[Vectors | None] = (),
        following: Chunk | None = None,
    ) -> ChunkResult:
        """Train the trips of `chunk` from the models `sent`, and return the weighted sums of what clients upload.

        `kept` is what each client kept from its last trip, None at its first; empty if the algorithm keeps nothing.
        While a GPU is at work, the samples of the `following` chunk are shuffled.
        """
        (learned,) = self.learn_together([chunk], sent, kept, following)
        return learned

    def groups(self, chunks: Sequence[Chunk]) -> list[list[Chunk]]:
        """Return runs of chunks that are trained together: the rows of all of them in each call of the engine.

        Their bits are those that they have one by one; where the processor does not see to that, they stay apart.
        """
        found = groups(chunks, self._at_once, self._task.workloads)
        apart = [[chunk] for chunk in chunks]
        return found if len(found) == len(apart) or all(map(self._is_steady, found)) else apart

    def prepare(self, chunks: Sequence[Chunk]) -> None:
        """Do for the first of the `groups` of `chunks`, trained next, what can be done before their models are known.

        If memory lacks, that is left to `learn_together`.
        """
        if not chunks:
            return
        chunk = joined(self.groups(chunks)[0])
        trips = self._trips(chunk)
        try:
            whole = self._device.type == "cpu" and not self._train.at_once
            prepare = prepare_of(self._train.engine) if whole else None
            ready = prepare(self._dataset, trips) if prepare else None
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            ready = None
        self._ahead = chunk, trips, ready

    def _is_steady(self, group: Sequence[Chunk]) -> bool:
        """Whether the rows of a group have bits that do not depend on their places; looked at once for each batch."""
        work = max(self._works(group[0]), key=lambda work: (work.batch, work.wanted))
        if work not in self._steady:
            try:
                self._steady[work] = steady(self._train.engine, self._task, self._dataset, work)
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                self._at_once = 0
                return False
        return self._steady[work]

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

        The engine may `add_up` updates by itself. Of clients that keep something there is one chunk.
        """
        chunk = joined(chunks)
        began, algorithm = time.perf_counter(), self._task.algorithm
        bases = [{name: torch.from_numpy(v).to(self._device) for name, v in vectors.items()} for vectors in sent]
        given, held, rows = _gathered(bases, chunk.bases), self._held(kept), self._rows(chunk, bases)
        rows = replace(rows, parts=[part for part, one in enumerate(chunks) for _ in one.clients])
        if (correction := algorithm.correction(given, held)) is not None:
            rows = replace(rows, corrections=correction.expand_as(rows.starts))
        rows = self._optimized(rows, algorithm.moments(given, held))
        if self._adds_up and add_up:
            learned = self._added_up(chunks, rows, began)
            good = [math.isfinite(one.loss) and finite(one.sums) for one in learned]
            pairs = zip(chunks, learned, good, strict=True)
            return [one if is_good else self._written_out(chunk, sent) for chunk, one, is_good in pairs]
        deltas, losses, state = self._train(self._dataset, rows)
        if following is not None:
            self._ahead = following, self._trips(following), None
        steps = torch.tensor(chunk.steps, dtype=torch.float32, device=self._device)[:, None]
        gradient = self._first_gradient(rows) if algorithm.wants_gradient else None
        trip = ClientResult(rows.starts, deltas, given, steps, chunk.lr, held, gradient, state)
        uploads, keeps = algorithm.upload(trip), algorithm.keep(trip)
        learned = []
        for one, mine, heard in _parts(chunks, losses):
            own = {name: rows_of[mine] for name, rows_of in uploads.items()}
            learned.append(self._learned(one, *summed(one, own, heard, algorithm.plain), heard))
        if kept:
            (only,) = learned
            learned = [only._replace(kept=_apart(keeps, len(kept)))]
        return _timed(learned, began)

    def _written_out(self, chunk: Chunk, sent: Sequence[Vectors]) -> ChunkResult:
        """Train a chunk once more, so that bad updates can be told from good ones."""
        (learned,) = self.learn_together([chunk], sent, add_up=False)
        return learned

    def _added_up(self, chunks: Sequence[Chunk], rows: ClientBatch, began: float) -> list[ChunkResult]:
        """Return what chunks learned, with updates added up by the engine: nobody has looked which are bad."""
        weights = [weight for chunk in chunks for weight in chunk.weights]
        total = UpdateSums({}, weights, range(len(weights)))
        losses = self._train(self._dataset, replace(rows, total=total)).losses
        nothing = rows.starts.new_zeros(rows.starts.shape[1])  # of a round in which nobody took a step
        learned = [
            self._learned(chunk, {"delta": total.sums.get(part, nothing).numpy()}, (), heard)
            for part, (chunk, _, heard) in enumerate(_parts(chunks, losses))
        ]
        return _timed(learned, began)

    def _learned(self, chunk: Chunk, sums: Vectors, bad: tuple[tuple[int, int], ...], losses: Tensor) -> ChunkResult:
        told = client_losses(chunk, losses) if self._task.tells_losses else ()
        return ChunkResult(chunk.clients[0], sums, float(losses.sum()), 0.0, bad, (), told, self._narrow())

    def limit(self, rows: int) -> None:
        """Train at most so many clients at once from now on."""
        self._train.limit(rows)

    def _narrow(self) -> MemoryLimit | None:
        """Return how many clients are trained at once, if memory lacked for more."""
        task, most = self._task, self._train.at_once
        if most is None:
            return None
        same = self._train.keeps_bits(task.model, task.algorithm.optimizer(task.setting))
        return MemoryLimit(most, same and not self._anew and all(self._steady.values()))

    def gradient_sum(self, clients: Sequence[int], sent: Vectors) -> GradientSum:
        """Return sums over `clients` of the gradients of their mean losses at the model `sent`; dropout is off."""
        x = torch.from_numpy(sent["x"]).to(self._device)
        held = (torch.from_numpy(self._split.of(client)) for client in clients)
        return gradient_sum(full_gradient(self._dataset, samples, x).cpu().numpy() for samples in held)

    def _held(self, kept: Sequence[Vectors | None]) -> dict[str, Tensor]:
        """Return what clients kept as rows, `(clients, parameters)` under each name."""
        zeros = np.zeros(self._task.model.parameters, np.float32)
        names = self._task.algorithm.keeps if kept else ()
        return {
            name: torch.from_numpy(np.stack([zeros if one is None else one[name] for one in kept])).to(self._device)
            for name in names
        }

    def _optimized(self, rows: ClientBatch, moments: Mapping[str, Tensor]) -> ClientBatch:
        """Return `rows` with the clients' optimiser and its state before the first step."""
        optimizer = self._task.algorithm.optimizer(self._task.setting)
        zeros = rows.starts.new_zeros(1)
        state = {name: moments.get(name, zeros).expand_as(rows.starts) for name in optimizer.holds}
        return replace(rows, optimizer=optimizer, state=state)

    def _first_gradient(self, rows: ClientBatch) -> Tensor:
        """Return the gradient of each row's first batch at its start; zeros for a row without steps."""
        steps = [min(1, steps) for steps in rows.steps]
        alone = replace(rows, corrections=None, prox=0.0, optimizer=PLAIN, state=NO_STATE, weight=1.0, beside=None)
        once = replace(alone, steps=steps, lr=1.0, ready=[])
        return -self._train(self._dataset, once).deltas

    def _rows(self, chunk: Chunk, bases: list[dict[str, Tensor]]) -> ClientBatch:
        task = self._task
        made, trips, ready = self._ahead or (None, None, None)
        if made != chunk or trips is None:
            trips, ready = self._trips(chunk), None
        self._ahead = None
        return ClientBatch(
            trips.clients,
            trips.steps,
            trips.works,
            trips.order,
            trips.keys,
            _gathered(bases, chunk.bases)["x"].expand(len(chunk.clients), -1),
            None,
            task.algorithm.prox,
            chunk.lr,
            weight=task.algorithm.loss_weight,
            bases=chunk.bases,
            beside=None if self._central is None else self._central.to(chunk),
            ready=[] if ready is None else [ready],
        )

    def _trips(self, chunk: Chunk) -> BatchPlan:
        return BatchPlan(chunk.clients, chunk.steps, self._works(chunk), self._order(chunk), self._keys(chunk))

    def _works(self, chunk: Chunk) -> list[Workload]:
        return [self._task.workloads[client] for client in chunk.clients]

    def _order(self, chunk: Chunk) -> list[NDArray[np.int64]]:
        """Return the samples of all steps of each trip."""
        held = (
            self._split.among(chunk.version, chunk.active) if isinstance(self._split, ReassignedSplit) else self._split
        )
        columns = zip(chunk.clients, chunk.trips, self._works(chunk), chunk.steps, strict=True)
        streams = Streams(self._task.seed, Purpose.BATCH)
        found = [
            batches.shuffled(streams.of(client, trip), held.of(client), work, steps)
            for client, trip, work, steps in columns
        ]
        if self._variants is None:
            return found
        draws = Streams(self._task.seed, Purpose.VARIANT)
        trips = zip(chunk.clients, chunk.trips, found, strict=True)
        return [batches.varied(draws.of(client, trip), order, *self._variants) for client, trip, order in trips]

    def first_gradient_sum(self, clients: Sequence[int], version: int, sent: Vectors) -> GradientSum:
        """Return sums over `clients` of the gradients of their first batches of a trip that begins at `version`.

        The gradients are those of the mean losses at the model `sent`; dropout is off.
        """
        x, task = torch.from_numpy(sent["x"]).to(self._device), self._task
        first = (
            batches.sequence(task.seed, client, version, self._split.of(client), task.workloads[client], 1)
            for client in clients
        )
        return gradient_sum(full_gradient(self._dataset, torch.from_numpy(rows), x).cpu().numpy() for rows in first)

    def _keys(self, chunk: Chunk) -> Tensor:
        if not self._has_dropout:
            return torch.zeros(len(chunk.clients), dtype=torch.int64, device=self._device)
        trips = zip(chunk.clients, chunk.trips, strict=True)
        return torch.tensor([dropout.key(self._task.seed, *trip) for trip in trips], device=self._device)


def _gathered(bases: list[dict[str, Tensor]], chosen: Sequence[int]) -> dict[str, Tensor]:
    """Return what was sent to each row: one vector for all if all started from the same version."""
    if len(bases) == 1:
        return bases[0]
    return {name: torch.stack([bases[base][name] for base in chosen]) for name in bases[0]}


def _parts(chunks: Sequence[Chunk], losses: Tensor) -> Iterator[tuple[Chunk, slice, Tensor]]:
    """Yield each chunk with its rows and their losses, which are summed in one order whoever else is there."""
    first = 0
    for chunk in chunks:
        rows = slice(first, first + len(chunk.clients))
        yield chunk, rows, losses[rows, : max(chunk.steps)].contiguous()
        first = rows.stop


def _timed(learned: Sequence[ChunkResult], began: float) -> list[ChunkResult]:
    """Return the same with the wall time since `began`, shared out."""
    seconds = (time.perf_counter() - began) / len(learned)
    return [one._replace(seconds=seconds) for one in learned]


def _apart(keeps: dict[str, Tensor], clients: int) -> tuple[Vectors, ...]:
    """Return what each client keeps as an object of its own, without the memory of its neighbours."""
    arrays = {name: rows.cpu().numpy() for name, rows in keeps.items()}
    return tuple({name: array[client].copy() for name, array in arrays.items()} for client in range(clients))
