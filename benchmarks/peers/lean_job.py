"""The job as a bare PyTorch loop: no framework, one client after the other, `--processes` of them at a time.

Nothing is done that the job does not ask for: batches are slices of an index, gradients go straight into the
parameters, and the weighted sum is taken in place. With several processes each takes every n-th client of a cohort;
they share the models through memory and meet at a barrier twice a round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from common import Job, Rounds, arguments, module, one_thread
from torch import Tensor, multiprocessing
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def train(network: torch.nn.Module, start: Tensor, x: Tensor, y: Tensor, job: Job) -> tuple[Tensor, float]:
    """Train one client for one pass and return (its model, the sum of its batches' losses)."""
    flat = start.clone()
    vector_to_parameters(flat, network.parameters())
    parameters = list(network.parameters())
    total = torch.zeros(())
    for chosen in torch.randperm(len(y)).split(job.batch):
        loss = functional.cross_entropy(network(x[chosen]), y[chosen])
        gradients = torch.autograd.grad(loss, parameters)
        total += loss.detach()
        with torch.no_grad():
            torch._foreach_add_(parameters, gradients, alpha=-job.lr)
    return flat, float(total)


@dataclass
class Shared:
    """What the processes share."""

    model: Tensor  # (parameters,)
    sums: Tensor  # (processes, parameters)
    losses: Tensor  # (processes,)
    barrier: Any


def work(rank: int, shared: Shared, job: Job, rounds: int, clock: Rounds | None = None) -> list[float]:
    """Take part in all rounds as process number `rank`; return the mean loss of each round."""
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    network = module(job)
    x, y = (torch.from_numpy(part) for part in job.everything())
    lots = torch.Generator().manual_seed(0)  # the same in every process
    losses = []
    for _ in range(rounds):
        cohort = torch.randperm(job.clients, generator=lots)[: job.cohort].tolist()
        mine, loss = shared.sums[rank].zero_(), 0.0
        for client in cohort[rank :: len(shared.sums)]:
            trained, found = train(network, shared.model, x[client], y[client], job)
            mine.add_(trained, alpha=1 / job.cohort)  # everybody has equally many samples
            loss += found
        shared.losses[rank] = loss
        shared.barrier.wait()
        if rank == 0:
            torch.sum(shared.sums, 0, out=shared.model)
            losses.append(float(shared.losses.sum()) / job.round_steps)
            if clock:
                clock.end()
        shared.barrier.wait()
    return losses


def main() -> None:
    one_thread()
    job, options = arguments(("--processes", {"type": int, "default": 1}))
    torch.manual_seed(0)
    start = parameters_to_vector(module(job).parameters()).detach()
    context, count = multiprocessing.get_context("spawn"), options.processes
    shared = Shared(start, torch.zeros(count, len(start)), torch.zeros(count), context.Barrier(count))
    others = [
        context.Process(target=work, args=(rank, shared, job, options.rounds), daemon=True) for rank in range(1, count)
    ]
    for tensor in (shared.model, shared.sums, shared.losses):
        tensor.share_memory_()
    for other in others:
        other.start()
    clock = Rounds()
    losses = work(0, shared, job, options.rounds, clock)
    for other in others:
        other.join()
    peer = "lean" if count == 1 else f"lean-{count}"
    clock.report(peer, job, (options.rounds - 1) * job.round_steps, losses)


if __name__ == "__main__":
    main()
