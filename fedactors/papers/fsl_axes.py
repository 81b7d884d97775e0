"""The axes that the experiments of the server learning papers vary, as overrides of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fedactors.papers.experiment import Label

Axis = Mapping[Label, Sequence[str]]

ALGORITHMS: Axis = {
    "FL": ("server.algorithm=fedavg", "server.participation=uniform"),
    "FL sqrt(S)": ("server.algorithm={name: fedavg, global_lr: 3.16227766}", "server.participation=uniform"),
    "DS": ("server.algorithm=ds", "server.participation=uniform"),
    "FSL": ("server.algorithm=fsl",),
    "FSL-p": ("server.algorithm=fsl-p",),
    "SCAFFOLD": ("server.algorithm=scaffold",),
    "FedDyn": ("server.algorithm={name: feddyn, alpha: 0.01}",),
    "FSLsyn": ("server.algorithm=fsl", "server.data=glyphs"),
}


def algorithms(*names: str) -> Axis:
    """Return the axis of these algorithms."""
    return {name: ALGORITHMS[name] for name in names}


def classes(*counts: int) -> Axis:
    """Return the axis of labels per client, C."""
    return {count: (f"task.partition.classes={count}",) for count in counts}


def rates(*values: float) -> Axis:
    """Return the axis of the clients' learning rate, eta_l."""
    return {value: (f"server.schedule.lr={value}",) for value in values}


def own(*sizes: int) -> Axis:
    """Return the axis of the server's IID samples, n_0."""
    return {size: (f"server.data={{name: iid, samples: {size}}}",) for size in sizes}


def weighted(name: str, weights: Iterable[float]) -> Axis:
    """Return the axis of the server's weight, gamma, for one algorithm."""
    return {weight: (f"server.algorithm={{name: {name}, server_weight: {weight}}}",) for weight in weights}


def cohorts(*sizes: int) -> Axis:
    """Return the axis of the cohort's size, S."""
    return {size: (f"server.cohort={size}",) for size in sizes}
