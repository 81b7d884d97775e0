"""Local steps, the same for one client and for rows of many, along g + corr + prox * (y - x).

`descend` is plain SGD in place, tensor by tensor; `Descent` is any client optimiser, on flat vectors; `LocalModels` has
the models of an engine and uses one of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedactors.clip import Clip
from fedactors.engines.client_batch import ClientBatch, Phases, PhaseStep
from fedactors.models.layers import Layers, Model
from fedactors.models.network import views
from fedactors.optim.client_optimizers import WHOLE, Optimizer
from fedactors.optim.clipping import clipped


def descend(
    tensors: Sequence[Tensor],
    grads: Sequence[Tensor],
    starts: Sequence[Tensor],
    corrections: Sequence[Tensor] | None,
    prox: Tensor | float,
    lr: float,
) -> None:
    """Move `tensors` in place; `grads` are used up. Shapes agree, or `corrections` broadcast over a leading axis.

    `prox` is one number, or one for each row of rows of tensors.

    Source: LocalSGD with a constant correction and a proximal weight, the common client of FedAvg (0, 0), FedProx
    (0, mu), SCAFFOLD (c - c_i, 0), FedDyn and gradient transfer.
    """
    moved = list(grads)
    if isinstance(prox, Tensor):
        for one, tensor, start in zip(moved, tensors, starts, strict=True):
            one.add_((tensor - start) * prox.view(-1, *[1] * (tensor.dim() - 1)))
    elif prox:
        away = torch._foreach_sub(list(tensors), list(starts))
        torch._foreach_add_(moved, away, alpha=prox)
    if corrections is not None:
        torch._foreach_add_(moved, list(corrections))
    torch._foreach_add_(list(tensors), moved, alpha=-lr)


class Descent:
    """The local steps of one client, or of rows of many, by an optimiser that may have a state.

    Args:
        optimizer: takes the steps.
        start: x, `(parameters,)` or `(clients, parameters)`; correction and the vectors of `state` have its shape.
        correction, prox: what is added to every gradient, besides it.
        lr: of every step.
        layers: of the model.
        clip: of every gradient, before anything is added to it.
        phases: which values move in which step; all in all steps if there are none.
        room: memory for y, of the shape of `start`; by default new memory.

    """

    def __init__(
        self,
        optimizer: Optimizer,
        start: Tensor,
        state: Mapping[str, Tensor],
        *,
        lr: float,
        correction: Tensor | None = None,
        prox: Tensor | float = 0.0,
        layers: Layers = WHOLE,
        clip: Clip | None = None,
        phases: Phases | None = None,
        room: Tensor | None = None,
    ) -> None:
        self._phases = phases
        self._optimizer = optimizer
        self._start = start
        self._lr = lr
        self._layers = layers
        self._clip = clip
        self._correction = correction
        self._prox = prox
        self.y = start.clone() if room is None else room.copy_(start)
        self.state = dict(state)

    def step(self, grad: Tensor, number: int, rows: int | None = None) -> None:
        """Move `y` and `state` by local step `number`, from 1, along `grad`; of a cohort, its first `rows` rows."""
        some = slice(rows)
        y = self.y[some]
        given = {name: vector[some] for name, vector in self.state.items()}
        if self._phases is None:
            along = self._along(grad, some)
            moved, renewed = self._optimizer.step(y, along, given, self._lr, number, self._layers)
        else:
            moved, renewed = self._part_moved(y, grad, given, self._phases.step(number, some), some)
        y.copy_(moved)
        for name, vector in renewed.items():
            if vector is not given[name]:
                rest = self.state[name][len(vector) :]
                self.state[name] = torch.cat([vector, rest]) if len(rest) else vector

    def _along(self, grad: Tensor, some: slice) -> Tensor:
        """Return the clipped gradient of the rows `some`, with what is added to it."""
        grad = clipped(grad, self._clip)
        if isinstance(self._prox, Tensor):
            grad = grad.add((self.y[some] - self._start[some]) * self._prox[some])
        elif self._prox:
            grad = grad.add(self.y[some] - self._start[some], alpha=self._prox)
        return grad if self._correction is None else grad + self._correction[some]

    def _part_moved(
        self, y: Tensor, grad: Tensor, given: Mapping[str, Tensor], step: PhaseStep, some: slice
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return `y` and the state after a step of what moves in it, as if the model had nothing else.

        What does not move counts in no norm and has no step.
        """
        along = step.part(self._along(step.part(grad), some))
        mine = {name: step.part(vector) for name, vector in given.items()}
        moved, renewed = self._optimizer.step(step.part(y), along, mine, self._lr, step.number, self._layers)
        state = {name: torch.where(step.moving, vector, given[name]) for name, vector in renewed.items()}
        return torch.where(step.moving, moved, y), state


def _first(parts: Sequence[Tensor], active: int | None) -> Sequence[Tensor]:
    """Return the first `active` rows of tensors; all if it is None."""
    return parts if active is None else [part[:active] for part in parts]


def _phases(rows: ClientBatch, row: int | None) -> Phases | None:
    """Return the phases of rows, or of one `row` of them."""
    return rows.phases if row is None or rows.phases is None else rows.phases.take(torch.tensor(row))


class LocalModels:
    """The local steps of rows, or of one `row` of them, as an engine takes them: with gradients tensor by tensor."""

    def __init__(self, model: Model, rows: ClientBatch, row: int | None = None, room: Tensor | None = None) -> None:
        one = slice(None) if row is None else row
        start = rows.starts[one]
        self._rows = rows
        self._prox = rows.prox if row is None else rows.pull_of(row)
        correction = None if rows.corrections is None else rows.corrections[one]
        state = {name: vectors[one] for name, vectors in rows.state.items()}
        self._descent = Descent(
            rows.optimizer,
            start,
            state,
            lr=rows.lr,
            correction=correction,
            prox=self._prox,
            layers=model.runs,
            clip=rows.clip,
            phases=_phases(rows, row),
            room=room,
        )
        self._start = start
        self._axis = start.dim() - 1
        self._buffers = len(model.buffers)
        self._starts = views(model, start)
        self._corrections = None if correction is None else views(model, correction)
        self.tensors = views(model, self._descent.y)
        self.gradients = start.new_zeros(start.shape) if rows.sums_gradients else None
        self._summed = None if self.gradients is None else views(model, self.gradients)

    def move(
        self, grads: Sequence[Tensor], step: int, active: int | None = None, written: Sequence[Tensor] = ()
    ) -> None:
        """Take local step number `step`, from 0; of many rows, the first `active` ones. `grads` are used up.

        The model's buffers become what the forward pass has `written`.
        """
        if self._rows.plain_sgd:
            corrections = None if self._corrections is None else _first(self._corrections, active)
            mine = _first(self.tensors, active)
            starts = _first(self._starts, active)
            if self._summed is not None:
                torch._foreach_add_(list(_first(self._summed, active)), list(grads))
            prox = self._prox if active is None or not isinstance(self._prox, Tensor) else self._prox[:active]
            descend(mine, grads, starts, corrections, prox, self._rows.lr)
        else:
            flat = torch.cat([grad.flatten(self._axis) for grad in grads], -1)
            self._descent.step(flat, step + 1, active)
        for buffer, value in zip(self.tensors[-self._buffers :] if self._buffers else (), written, strict=True):
            buffer[:active].copy_(value) if self._axis else buffer.copy_(value)

    @property
    def delta(self) -> Tensor:
        """y - x."""
        return self._descent.y.detach() - self._start

    @property
    def state(self) -> Mapping[str, Tensor]:
        """The optimiser's state after the steps taken so far."""
        return self._descent.state
