"""The axes that the experiments of the mixed federated learning paper vary, as overrides of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedactors.papers.experiment import Label

Axis = Mapping[Label, Sequence[str]]

PLAIN = ("server.algorithm=fedavg", "server.participation=examples")


def method(name: str, **options: Any) -> str:
    """Return the override that chooses an algorithm with options."""
    said = "".join(f", {key}: {value}" for key, value in options.items())
    return f"server.algorithm={{name: {name}{said}}}"


def methods(batch: int, once: int, **options: Any) -> Axis:
    """Return PT, 1-W, 2-W as printed, and 2-W with eta_m = 1/2; |B_c| is `batch`, of 1-W `once`."""
    return {
        "PT": (method("mixed-pt", central_batch=batch, **options),),
        "1-W": (method("mixed-1w", central_batch=once, **options),),
        "2-W": (method("mixed-2w", central_batch=batch, **options),),
        "2-W 1/2": (method("mixed-2w", central_batch=batch, merge_lr=0.5, **options),),
    }


def measured(axis: Axis, *names: str) -> Axis:
    """Return `axis` with G~^2 and B~^2 measured in every round of the methods named."""
    every = "server.dissimilarity_every=1"
    return {name: (*changes, every) if name in names else changes for name, changes in axis.items()}


def single(changes: Sequence[str]) -> Axis:
    """Return the axis of K with the one step of table 2: a hundred rounds that measure G~^2 and B~^2."""
    return {1: (*changes, "server.dissimilarity_every=1", "server.local.steps=1", "server.rounds=100")}


def rated(changes: Sequence[str], lr: float) -> tuple[str, ...]:
    """Return `changes` with a rate of its own (eta)."""
    return (*changes, f"server.schedule.lr={lr:g}")


def oracle(steps: int, batch: int, group: str = "phones") -> tuple[str, ...]:
    """Return the oracle: SGD on both sources in one place, `steps` of `batch` samples a round."""
    pool = ("task.split=pooled", f"population.{group}.count=1", "server.cohort=1", "server.data=null")
    return (*PLAIN, *pool, f"server.local={{steps: {steps}, batch: {batch}}}")


def sizes(name: str, batches: Sequence[int], **options: Any) -> Axis:
    """Return the axis of |B_c| for one algorithm."""
    return {size: (method(name, central_batch=size, **options),) for size in batches}


def trades(product: float, steps: Sequence[int]) -> Axis:
    """Return the axis of K, with K eta fixed."""
    return {k: (f"server.local.steps={k}", f"server.schedule.lr={product / k:g}") for k in steps}
