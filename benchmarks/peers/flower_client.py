"""The client half of `flower_job.py`: a module of its own, so that Ray's workers import it, not unpickle it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from common import JOBS, Job, module
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

app = ClientApp()

Loop = Callable[[nn.Module, Tensor, Tensor, Job], tuple[float, int]]


def docs_loop(network: nn.Module, x: Tensor, y: Tensor, job: Job) -> tuple[float, int]:
    """Train for one pass as the quickstart does; return the sum of losses and the number of steps."""
    loader = DataLoader(TensorDataset(x, y), batch_size=job.batch, shuffle=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=job.lr)
    network.train()
    total, steps = 0.0, 0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(network(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
        steps += 1
    return total, steps


def lean_loop(network: nn.Module, x: Tensor, y: Tensor, job: Job) -> tuple[float, int]:
    """Train for one pass without DataLoader and optimizer; return the sum of losses and the number of steps."""
    parameters, total, steps = list(network.parameters()), torch.zeros(()), 0
    for chosen in torch.randperm(len(y)).split(job.batch):
        loss = functional.cross_entropy(network(x[chosen]), y[chosen])
        gradients = torch.autograd.grad(loss, parameters)
        total += loss.detach()
        with torch.no_grad():
            torch._foreach_add_(parameters, gradients, alpha=-job.lr)
        steps += 1
    return float(total), steps


@lru_cache(maxsize=1)
def cached(job: Job) -> tuple[Tensor, Tensor]:
    """Return all data, once per process, as the quickstart caches its data set."""
    x, y = job.everything()
    return torch.from_numpy(x), torch.from_numpy(y)


LOOPS: dict[str, Loop] = {"docs": docs_loop, "lean": lean_loop}


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train one client from the arrays in `message`."""
    torch.set_num_threads(1)
    config = message.content["config"]
    job = JOBS[config["job"]]
    network = module(job)
    network.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = (part[context.node_config["partition-id"]] for part in cached(job))
    loss, steps = LOOPS[config["loop"]](network, x, y, job)
    metrics = MetricRecord({"train_loss": loss / steps, "steps": steps, "num-examples": len(y)})
    content = RecordDict({"arrays": ArrayRecord(network.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)
