"""What a loop is given, and the reference that every other loop is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Work:
    """A cohort to train from one model: everybody takes the same number of steps and counts the same."""

    model: list[Tensor]  # as `parameters()` of the module lists them
    x: Tensor  # (clients, samples, *shape), of all clients
    y: Tensor  # (clients, samples)
    cohort: list[int]
    order: Tensor  # (cohort, samples): the order in which each one goes through its samples
    batch: int
    lr: float
    chunk: int  # clients that are trained together

    @property
    def steps(self) -> int:
        """Local steps of one client."""
        return self.order.shape[1] // self.batch

    def chunks(self) -> Iterator[tuple[list[int], Tensor]]:
        """Yield the clients and orders of each chunk."""
        for at in range(0, len(self.cohort), self.chunk):
            yield self.cohort[at : at + self.chunk], self.order[at : at + self.chunk]


Loop = Callable[[Work], tuple[list[Tensor], float]]


def module_loop(network: nn.Module) -> Loop:
    """Return the loop of a PyTorch user: one module, one optimiser per client, `backward` and `step`."""

    def loop(work: Work) -> tuple[list[Tensor], float]:
        sums = [torch.zeros_like(tensor) for tensor in work.model]
        total, parameters = 0.0, list(network.parameters())
        for client, order in zip(work.cohort, work.order, strict=True):
            with torch.no_grad():
                for parameter, start in zip(parameters, work.model, strict=True):
                    parameter.copy_(start)
            optimizer = torch.optim.SGD(parameters, lr=work.lr)
            for chosen in order.split(work.batch):
                optimizer.zero_grad()
                loss = functional.cross_entropy(network(work.x[client][chosen]), work.y[client][chosen])
                loss.backward()
                optimizer.step()
                total += loss.item()
            add_update(sums, parameters, work)
        return sums, total / work.order.numel() * work.batch

    return loop


def lean_loop(network: nn.Module) -> Loop:
    """Return the same without optimiser and `.grad`: the reference."""

    def loop(work: Work) -> tuple[list[Tensor], float]:
        sums = [torch.zeros_like(tensor) for tensor in work.model]
        total, parameters = torch.zeros(()), list(network.parameters())
        for client, order in zip(work.cohort, work.order, strict=True):
            x, y = work.x[client], work.y[client]
            with torch.no_grad():
                torch._foreach_copy_(parameters, work.model)
            for chosen in order.split(work.batch):
                loss = functional.cross_entropy(network(x[chosen]), y[chosen])
                gradients = torch.autograd.grad(loss, parameters)
                total += loss.detach()
                with torch.no_grad():
                    torch._foreach_add_(parameters, gradients, alpha=-work.lr)
            add_update(sums, parameters, work)
        return sums, float(total) / work.order.numel() * work.batch

    return loop


@torch.no_grad()
def add_update(sums: list[Tensor], trained: list[Tensor], work: Work) -> None:
    """Add (trained - start) / clients to `sums`."""
    torch._foreach_add_(sums, torch._foreach_sub(trained, work.model), alpha=1 / len(work.cohort))
