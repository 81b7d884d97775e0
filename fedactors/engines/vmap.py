"""Local steps of many clients at once, for any model: `vmap` over rows, each with its own start and steps."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from fedactors.data import batches
from fedactors.engines.added_loss import added_to_samples, global_outputs, vmappable
from fedactors.engines.base import LongestFirstEngine
from fedactors.engines.client_batch import BatchResult, ClientBatch, DeviceDataset, second_key
from fedactors.engines.descent import LocalModels
from fedactors.engines.local_work import AddedRule, LocalWork
from fedactors.models.layers import Model
from fedactors.models.loss_description import LossDescription
from fedactors.models.losses import output_terms, outputs_of, sample_terms, weighted_loss
from fedactors.models.module_layer import ModuleLayer
from fedactors.models.torch_modules import ready, written_buffers


class VmapEngine(LongestFirstEngine):
    """Takes any work on any device; used on a GPU where no other engine is for the work, on a CPU by name only."""

    sums_gradients = True
    takes_added_loss = True
    accepts = "models of fedactors' own layers, or modules that torch.func.vmap can run; full batches under BatchNorm"

    def supports(self, work: LocalWork, device: str) -> bool:
        """Modules and added losses that vmap can run; if samples of a batch depend on each other, only full batches."""
        full = all(one.pass_samples % one.batch == 0 for one in work.workloads)
        modules = [layer for layer in work.model.layers if isinstance(layer, ModuleLayer)]
        return _losses_run(work) and all(layer.vmappable and (full or not layer.mixes) for layer in modules)

    def suits(self, work: LocalWork, device: str) -> bool:
        """On a GPU."""
        return device != "cpu"

    def max_rows(self, dataset: DeviceDataset) -> int:
        """Chunks stay apart: see `chunks.chunk_sizes`."""
        return 0

    def train_sorted(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows, longest first."""
        device = rows.starts.device
        ready(dataset.model, device)
        longest = max(rows.steps)
        losses = torch.zeros(longest, len(rows.clients), device=device)
        local = LocalModels(dataset.model, rows)
        samples, weights = (torch.from_numpy(a).to(device) for a in batches.table(rows.order, rows.works, rows.steps))
        added = rows.added_loss
        second = rows.second_loss and rows.second_loss.terms
        gradient = gradient_of(dataset.model, rows.weight, second, added and added.rule)
        shared = added is None or added.is_shared
        shorter = [-steps for steps in rows.steps]
        for step in range(longest):
            active = bisect.bisect_left(shorter, -step)  # rows with more than `step` steps
            chosen = samples[step, :active]
            tensors = tuple(tensor[:active] for tensor in local.tensors)
            counted = dataset.counted(chosen, weights[step, :active])
            inputs = (tensors, dataset.x[chosen], dataset.y[chosen], counted, rows.keys[:active])
            further = rows.second_loss.batches(active, step) if rows.second_loss else ()
            starts = added.tensors(dataset.model, active) if added else ()
            grads, (losses[step, :active], written) = gradient(step, *inputs, *further, starts=starts, shared=shared)
            local.move(grads, step, active, written)
        return BatchResult(local.delta, losses.T, local.state, local.gradients)


def _losses_run(work: LocalWork) -> bool:
    """Whether vmap can run the loss of the model, and what an algorithm adds to it."""
    loss = work.model.loss
    if isinstance(loss, LossDescription) and not loss.vmappable:
        return False
    return work.added_loss is None or vmappable(work.added_loss, work.model.output_shape)


@lru_cache(maxsize=16)
def gradient_of(
    model: Model, weight: float, second: tuple[Model, float] | None, added: AddedRule | None = None
) -> Callable[..., Any]:
    """Return the function of a step and rows of (tensors, x, y, weights, key, further x and y) to (gradients, found).

    `found` are the losses and the buffers that the forward pass has written.

    The gradient is that of `weight` times the loss and, if `second` gives a second loss and its weight, of that loss on
    the further samples. With an `added` loss the function is also given `starts`, the tensors of the models whose
    outputs are compared with: a row for each client, or one model without a row axis if it is `shared`.
    """

    def total(
        tensors: tuple[Tensor, ...],
        x: Tensor,
        y: Tensor,
        weights: Tensor,
        key: Tensor,
        step: int | Tensor,
        starts: tuple[Tensor, ...],
        *further: Tensor,
    ) -> tuple[Tensor, tuple[Tensor, tuple[Tensor, ...]]]:
        theirs = None if added is None else global_outputs(model, starts, x)
        with written_buffers() as written:
            if added is None or theirs is None:
                own = minimised = weighted_loss(model, tensors, x, y, weights, key, step)
            else:
                outputs = outputs_of(model, tensors, x, key, step)
                terms = output_terms(model, tensors, outputs, y)
                own = terms.mean(weights)
                minimised = terms.plus(added_to_samples(added, outputs, y, theirs)).mean(weights)
        found = own, tuple(written)
        if second is None:
            return minimised * weight, found
        samples, labels = further
        more = sample_terms(second[0], tensors, samples, labels, second_key(key), step)
        return minimised * weight + more.average() * second[1], found

    gradient: Any = grad(total, has_aux=True)

    def rows(step: int | Tensor, *inputs: Any, starts: tuple[Tensor, ...] = (), shared: bool = True) -> Any:
        dims = (0, 0, 0, 0, 0, None, None if shared else 0, *(0 for _ in inputs[5:]))
        return vmap(gradient, in_dims=dims)(*inputs[:5], step, starts, *inputs[5:])

    return rows
