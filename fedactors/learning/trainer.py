"""Executes chunks on one device: the only place where local steps are taken, whoever asks for them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.learning import batches, cohort, dropout, fused, graphed, sequential, span
from fedactors.learning.algorithm import Trip
from fedactors.learning.dissimilarity import Slope, slope
from fedactors.learning.fitting import Fitting
from fedactors.learning.full_gradient import full_gradient
from fedactors.learning.graphed import Graphed
from fedactors.learning.layers import Dropout, Model
from fedactors.learning.lesson import Central, Chunk, ClientLoss, Learned, Lesson, Narrow, Samples, Vectors
from fedactors.learning.optimizers import PLAIN, SGD
from fedactors.learning.redeal import Redealt
from fedactors.learning.resident import NO_STATE, Beside, Resident, Rows, Train
from fedactors.streams import Purpose
from fedactors.workload import Workload, workload

_ROOM = 2**28  # parameters of all models of a chunk on a GPU: 1 GiB, and a few times that in a step
_WORK = 2**26  # those that keep a GPU busy: it reads them in 0.1 ms
_CACHED = 1_300_000  # those that stay in the cache of a CPU: 5 MB
_HOSTS = 4  # that there should be work for, however many there are: part of the bits


def engine(model: Model, device: str, *, two_losses: bool = False) -> Train:
    """Return the engine that trains `model` by plain SGD on a device type, with `two_losses` in each step if asked.

    The choice looks at these alone, never at a chunk: engines differ in the last place, so a run uses one of them
    throughout. On a CPU, convolutions gain nothing from company.
    """
    if device == "cuda":
        return Graphed() if graphed.can(model) and not two_losses else cohort.train
    return fused.train if fused.can(model) and not two_losses else sequential.train


def engine_of(lesson: Lesson, device: str) -> Train:
    """Return the engine for the clients of a lesson.

    That is `engine`, unless the span of the first layer is quicker, or the optimiser has a state: steps that move one
    are not recorded.
    """
    algorithm, two_losses = lesson.algorithm, lesson.algorithm.centre == "at clients"
    sgd = isinstance(algorithm.optimizer(lesson.setting), SGD)
    if device == "cuda" and not sgd:
        return fused.train if fused.can(lesson.model) and not two_losses else cohort.train
    plain = sgd and not algorithm.corrects and algorithm.loss_weight == 1.0
    if plain and device == "cpu" and span.pays(lesson.model, lesson.workloads):
        return span.train
    return engine(lesson.model, device, two_losses=two_losses)


def chunk_sizes(trips: int, model: Model, device: str) -> list[int]:
    """Return how many trips each chunk takes, from their number, the model and the device type alone.

    On a CPU the moving models of a chunk should stay in its cache, and there should be work for four hosts, evenly. A
    GPU should have work that takes longer than its launch, and room for what a step makes of models.
    """
    if device == "cuda":
        most = max(2, min(1024, _ROOM // model.parameters))
        hosts = min(_HOSTS, trips * model.parameters // _WORK)
    else:
        most = max(2, min(25, _CACHED // model.parameters)) if fused.can(model) else 4
        hosts = _HOSTS
    chunks = max(-(-trips // most), min(hosts, trips // 4))
    if device != "cuda" and chunks > 2:
        chunks = -(-chunks // _HOSTS) * _HOSTS
    return [trips // chunks + (number < trips % chunks) for number in range(min(chunks, trips))]


class Trainer:
    """Trains chunks of one lesson on one device ("cpu" or "cuda")."""

    def __init__(self, lesson: Lesson, samples: Samples, device: str = "cpu") -> None:
        self._lesson, self._split = lesson, samples.split
        self._device = torch.device(device)
        x, y = (torch.from_numpy(part).to(self._device) for part in (samples.x, samples.y))
        self._resident = Resident(lesson.model, x, y)
        self._central = None if samples.central is None else _Sent(lesson, samples.central, self._device)
        self._train = Fitting(engine_of(lesson, device))
        self._ahead: tuple[Chunk | None, list[NDArray[np.int64]]] = None, []  # what was shuffled for which chunk
        self._has_dropout = any(isinstance(layer, Dropout) for layer in lesson.model.layers)

    def learn(
        self,
        chunk: Chunk,
        sent: Sequence[Vectors],
        kept: Sequence[Vectors | None] = (),
        following: Chunk | None = None,
    ) -> Learned:
        """Train the trips of `chunk` from the models `sent`, and return the weighted sums of what clients upload.

        `kept` is what each client kept from its last trip, None at its first; empty if the algorithm keeps nothing.
        While a GPU is at work, the samples of the `following` chunk are shuffled.
        """
        began, algorithm = time.perf_counter(), self._lesson.algorithm
        bases = [{name: torch.from_numpy(v).to(self._device) for name, v in vectors.items()} for vectors in sent]
        given, held, rows = _gathered(bases, chunk.bases), self._held(kept), self._rows(chunk, bases)
        if (correction := algorithm.correction(given, held)) is not None:
            rows = replace(rows, corrections=correction.expand_as(rows.starts))
        rows = self._optimized(rows, algorithm.moments(given, held))
        deltas, losses, state = self._train(self._resident, rows)
        if following is not None:
            self._ahead = following, self._order(following)
        losses = losses.contiguous()  # so that sums run in one order, whatever the engine
        steps = torch.tensor(chunk.steps, dtype=torch.float32, device=self._device)[:, None]
        gradient = self._first_gradient(rows) if algorithm.wants_gradient else None
        trip = Trip(rows.starts, deltas, given, steps, chunk.lr, held, gradient, state)
        uploads, keeps = algorithm.upload(trip), algorithm.keep(trip)
        equal = (1.0,) * len(chunk.weights)
        sums = {
            name: _weighted_sum(rows_of, equal if name in algorithm.plain else chunk.weights)
            for name, rows_of in uploads.items()
        }
        loss = float(losses.sum())
        bad = () if math.isfinite(loss) and _finite(sums) else _bad(chunk, uploads, losses)
        if not bad and not _finite(sums):  # finite updates whose sum is not
            bad = tuple((client, steps - 1) for client, steps in zip(chunk.clients, chunk.steps, strict=True))
        seconds = time.perf_counter() - began
        told = _told(chunk, losses) if self._lesson.tells_losses else ()
        return Learned(chunk.clients[0], sums, loss, seconds, bad, _apart(keeps, len(kept)), told, self._narrow())

    def limit(self, rows: int) -> None:
        """Train at most so many clients at once from now on."""
        self._train.limit(rows)

    def _narrow(self) -> Narrow | None:
        """Return how many clients are trained at once, if memory lacked for more."""
        lesson, most = self._lesson, self._train.at_once
        optimizer = lesson.algorithm.optimizer(lesson.setting)
        return None if most is None else Narrow(most, self._train.keeps_bits(lesson.model, optimizer))

    def slope(self, clients: Sequence[int], sent: Vectors) -> Slope:
        """Return sums over `clients` of the gradients of their mean losses at the model `sent`; dropout is off."""
        x = torch.from_numpy(sent["x"]).to(self._device)
        held = (torch.from_numpy(self._split.of(client)) for client in clients)
        return slope(full_gradient(self._resident, samples, x).cpu().numpy() for samples in held)

    def _held(self, kept: Sequence[Vectors | None]) -> dict[str, Tensor]:
        """Return what clients kept as rows, `(clients, parameters)` under each name."""
        zeros = np.zeros(self._lesson.model.parameters, np.float32)
        names = self._lesson.algorithm.keeps if kept else ()
        return {
            name: torch.from_numpy(np.stack([zeros if one is None else one[name] for one in kept])).to(self._device)
            for name in names
        }

    def _optimized(self, rows: Rows, moments: Mapping[str, Tensor]) -> Rows:
        """Return `rows` with the clients' optimiser and its state before the first step."""
        optimizer = self._lesson.algorithm.optimizer(self._lesson.setting)
        zeros = rows.starts.new_zeros(1)
        state = {name: moments.get(name, zeros).expand_as(rows.starts) for name in optimizer.holds}
        return replace(rows, optimizer=optimizer, state=state)

    def _first_gradient(self, rows: Rows) -> Tensor:
        """Return the gradient of each row's first batch at its start; zeros for a row without steps."""
        steps = [min(1, steps) for steps in rows.steps]
        alone = replace(rows, corrections=None, prox=0.0, optimizer=PLAIN, state=NO_STATE, weight=1.0, beside=None)
        once = replace(alone, steps=steps, lr=1.0)
        return -self._train(self._resident, once).deltas

    def _rows(self, chunk: Chunk, bases: list[dict[str, Tensor]]) -> Rows:
        lesson = self._lesson
        made, order = self._ahead
        return Rows(
            chunk.clients,
            chunk.steps,
            self._works(chunk),
            order if made == chunk else self._order(chunk),
            self._keys(chunk),
            _gathered(bases, chunk.bases)["x"].expand(len(chunk.clients), -1),
            None,
            lesson.algorithm.prox,
            chunk.lr,
            weight=lesson.algorithm.loss_weight,
            beside=None if self._central is None else self._central.to(chunk),
        )

    def _works(self, chunk: Chunk) -> list[Workload]:
        return [self._lesson.workloads[client] for client in chunk.clients]

    def _order(self, chunk: Chunk) -> list[NDArray[np.int64]]:
        """Return the samples of all steps of each trip."""
        held = self._split.among(chunk.version, chunk.active) if isinstance(self._split, Redealt) else self._split
        columns = zip(chunk.clients, chunk.trips, self._works(chunk), chunk.steps, strict=True)
        return [
            batches.sequence(self._lesson.seed, client, trip, held.of(client), work, steps)
            for client, trip, work, steps in columns
        ]

    def first_slope(self, clients: Sequence[int], version: int, sent: Vectors) -> Slope:
        """Return sums over `clients` of the gradients of their first batches of a trip that begins at `version`.

        The gradients are those of the mean losses at the model `sent`; dropout is off.
        """
        x, lesson = torch.from_numpy(sent["x"]).to(self._device), self._lesson
        first = (
            batches.sequence(lesson.seed, client, version, self._split.of(client), lesson.workloads[client], 1)
            for client in clients
        )
        return slope(full_gradient(self._resident, torch.from_numpy(rows), x).cpu().numpy() for rows in first)

    def _keys(self, chunk: Chunk) -> Tensor:
        if not self._has_dropout:
            return torch.zeros(len(chunk.clients), dtype=torch.int64, device=self._device)
        trips = zip(chunk.clients, chunk.trips, strict=True)
        return torch.tensor([dropout.key(self._lesson.seed, *trip) for trip in trips], device=self._device)


class _Sent:
    """Central samples that clients are sent besides their models: batches of their own for every step."""

    def __init__(self, lesson: Lesson, central: Central, device: torch.device) -> None:
        x, y = (torch.from_numpy(part).to(device) for part in (central.x, central.y))
        self._resident, self._seed = Resident(lesson.central_model, x, y), lesson.seed
        self._batch, self._weight = min(central.batch, len(y)), lesson.algorithm.central_share

    def to(self, chunk: Chunk) -> Beside:
        """Return what the clients of `chunk` are sent."""
        held, longest = np.arange(len(self._resident.y), dtype=np.int64), max(chunk.steps)
        work = workload(len(held), self._batch, epochs=None, steps=longest, drop_last=True)
        order = [
            batches.sequence(self._seed, client, trip, held, work, longest, Purpose.CENTRAL_BATCH)
            for client, trip in zip(chunk.clients, chunk.trips, strict=True)
        ]
        samples = torch.from_numpy(np.stack(order).reshape(len(order), longest, self._batch))
        return Beside(self._resident, samples.to(self._resident.x.device), self._weight)


def _gathered(bases: list[dict[str, Tensor]], chosen: Sequence[int]) -> dict[str, Tensor]:
    """Return what was sent to each row: one vector for all if all started from the same version."""
    if len(bases) == 1:
        return bases[0]
    return {name: torch.stack([bases[base][name] for base in chosen]) for name in bases[0]}


def _weighted_sum(rows: Tensor, weights: Sequence[float]) -> np.ndarray:
    """Return sum_i w_i rows_i; a CPU adds in the order of the rows, a GPU in one that depends on the shape alone."""
    if rows.is_cuda:
        total = torch.tensor(weights, dtype=rows.dtype, device=rows.device) @ rows
    else:
        total = torch.zeros_like(rows[0])
        for row, weight in zip(rows, weights, strict=True):
            total.add_(row, alpha=weight)
    result: np.ndarray = total.cpu().numpy()
    return result


def _apart(keeps: dict[str, Tensor], clients: int) -> tuple[Vectors, ...]:
    """Return what each client keeps as an object of its own, without the memory of its neighbours."""
    arrays = {name: rows.cpu().numpy() for name, rows in keeps.items()}
    return tuple({name: array[client].copy() for name, array in arrays.items()} for client in range(clients))


def _finite(sums: Vectors) -> bool:
    return all(bool(np.isfinite(total).all()) for total in sums.values())


def _told(chunk: Chunk, losses: Tensor) -> tuple[ClientLoss, ...]:
    """Return what each client's loss was, of those that took a step."""
    exact = losses.double()
    sums, squares = exact.sum(1).tolist(), exact.square().sum(1).tolist()
    columns = zip(chunk.clients, chunk.steps, sums, squares, strict=True)
    return tuple((client, total / steps, square / steps) for client, steps, total, square in columns if steps)


def _bad(chunk: Chunk, uploads: dict[str, Tensor], losses: Tensor) -> tuple[tuple[int, int], ...]:
    """Return (client, first bad local step) of each update that holds NaN or Inf."""
    found = []
    for row, client in enumerate(chunk.clients):
        if not all(bool(rows[row].isfinite().all()) for rows in uploads.values()):
            wrong = torch.nonzero(~losses[row].isfinite())
            found.append((client, int(wrong[0]) if len(wrong) else chunk.steps[row] - 1))
    return tuple(found)
