"""Tries an algorithm of the user's for two rounds, before anything runs: clients and server do what they do in a run.

Two clients take two local steps on noise: see `trial_samples`. An algorithm whose server has data is left out: what it
learns from them belongs to the scenario's model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fedactors.data.base import LabelledSamples
from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import Algorithm, ClientResult, Round
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.row_vectors import as_tensors
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, TrainingTask, Vectors
from fedactors.models.network import initial
from fedactors.own_code.global_draws import undrawn
from fedactors.own_code.user_errors import class_called
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.trials.trial_calls import (
    OwnCalls,
    described,
    refuse_other_rows,
    refuse_shape,
    telling_trial,
)
from fedactors.simulation.trials.trial_samples import CLIENTS, SAMPLES, trial_model, trial_samples
from fedactors.workload import workload

_ROUNDS = 2
_FOLLOWS = (
    "what follows from its arguments and options: state in what start and aggregate, or keep, return, and no random"
    " numbers"
)
_OWN_ROW = "what follows from each client's own row, as trip.delta.norm(dim=-1, keepdim=True) does"


def try_algorithm(prepared: Prepared) -> None:
    """Raise ScenarioError, with the user's line, if the scenario's algorithm cannot do two rounds."""
    own = prepared.scenario.server.algorithm
    model = trial_model(prepared)
    if own.learns or own.centre != "none" or own.shares or model is None:
        return
    algorithm = _watched(own)
    samples = trial_samples(prepared, model)
    work = workload(SAMPLES, 2, epochs=1, steps=None)
    task = TrainingTask(model, algorithm, prepared.scenario.seed, (work,) * CLIENTS, prepared.setting)
    central = CentralLearner(model, task.seed, LabelledSamples(samples.x[:0], samples.y[:0]))
    with telling_trial(own, "with two clients"):
        trainer = Trainer(task, samples)
        start = torch.from_numpy(initial(model, task.seed))
        state = _state(algorithm, "start", algorithm.start(start), start)
        kept: list[Vectors | None] = [None] * CLIENTS if algorithm.keeps else []
        for version in range(_ROUNDS):
            chunk = Chunk(version, (0, 1), (0, 0), (version, version), (work.wanted,) * CLIENTS, (0.5, 0.5), 0.01)
            learned = trainer.learn(chunk, [_sent(algorithm, state)], kept)
            kept = list(learned.kept)
            facts = Round(version, CLIENTS, 1.0, chunk.lr, prepared.setting, prepared.setting.clients, largest=0.5)
            found = algorithm.aggregate(state, as_tensors(learned.sums), facts, central)
            state = _state(algorithm, "aggregate", found, start)
        _state(algorithm, "idle", algorithm.idle(state, facts._replace(heard=0, weight=0.0), central), start)


def _watched(own: Algorithm) -> Algorithm:
    """Return a copy of an algorithm in which calls of the methods that it defines are tried."""
    calls, found = OwnCalls(own), deepcopy(own)
    tried: dict[str, Callable[..., Any]] = {
        "added_loss": _added_loss,
        "upload": _rows,
        "keep": _keep,
        **dict.fromkeys(("start", "correction", "moments", "prox_of", "aggregate", "idle"), _called),
    }
    for method, call in tried.items():
        if getattr(type(own), method) is not getattr(Algorithm, method):
            vars(found)[method] = partial(call, calls, method)  # found before the method of the class
    return found


def _called(calls: OwnCalls[Algorithm], method: str, *given: Any) -> Any:
    """Return what a method returns, as `OwnCalls.call` does."""
    _, *names = inspect.signature(getattr(Algorithm, method)).parameters
    return calls.call(method, dict(zip(names, given, strict=True)), _FOLLOWS)


def _added_loss(calls: OwnCalls[Algorithm], method: str, *given: Tensor) -> Tensor:
    """Return the added loss. Raises ScenarioError if it draws at random: clients would get other ones elsewhere."""
    with undrawn(calls.who(method), "what follows from outputs, labels and global outputs"):
        found: Tensor = calls.bound(method)(*given)
    return found


def _rows(calls: OwnCalls[Algorithm], method: str, trip: ClientResult) -> Any:
    """Return what clients send. Raises ScenarioError unless that is a row of each, which follows from its own trip."""
    found = _called(calls, method, trip)
    if not isinstance(found, Mapping):
        raise ScenarioError(f"{calls.who(method)}: returned {described(found)} (accepted: a dictionary of tensors)")
    for name, rows in found.items():
        refuse_shape(calls.who(method), rows, (CLIENTS, None), f"{name} as ")
    refuse_other_rows(calls.who(method), found, lambda row: calls.bound(method)(_only(trip, row)), _OWN_ROW)
    return found


def _keep(calls: OwnCalls[Algorithm], method: str, trip: ClientResult) -> Any:
    """Return what clients keep, as `_rows` does, and under the names in `keeps`."""
    found = _rows(calls, method, trip)
    keeps = calls.own.keeps
    if lacking := [name for name in keeps if name not in found]:
        names = ", ".join(found) or "nothing"
        raise ScenarioError(
            f"{calls.who(method)}: returned {names} without {lacking[0]} (accepted: all of keeps: {', '.join(keeps)})"
        )
    for name in keeps:
        refuse_shape(calls.who(method), found[name], (CLIENTS, trip.delta.shape[1]), f"{name} as ")
    return found


def _only(trip: ClientResult, row: int) -> ClientResult:
    """Return the trip of one client as rows of one."""

    def of(one: Any) -> Any:
        if isinstance(one, Mapping):
            return {name: of(value) for name, value in one.items()}
        return one[row : row + 1] if isinstance(one, Tensor) and one.dim() == 2 else one

    return ClientResult(*map(of, trip))


def _sent(algorithm: Algorithm, state: Mapping[str, Tensor]) -> Vectors:
    """Return what clients are sent. Raises ScenarioError if the state lacks it."""
    if lacking := [name for name in algorithm.sends if name not in state]:
        kind = class_called(type(algorithm))
        raise ScenarioError(f"{kind}: sends {lacking[0]}, which is not in the state (found: {', '.join(state)})")
    return {name: state[name].numpy() for name in algorithm.sends}


def _state(algorithm: Algorithm, method: str, found: Any, start: Tensor) -> dict[str, Tensor]:
    """Return what `method` returned as the server's state. Raises ScenarioError if it is none."""
    if not isinstance(found, Mapping):
        returned = described(found)
    elif "x" not in found:
        returned = f"a dictionary with {', '.join(map(str, found)) or 'nothing'}"
    elif wrong := [name for name, one in found.items() if not _is_state(one, start if name == "x" else None)]:
        returned = f"{wrong[0]} as {described(found[wrong[0]])}"
    else:
        return dict(found)
    raise ScenarioError(
        f"{class_called(type(algorithm))}.{method}: returned {returned} (accepted: a dictionary of tensors without"
        f" gradients, with the model as x, float32 of shape {tuple(start.shape)})"
    )


def _is_state(one: Any, like: Tensor | None) -> bool:
    """Whether a value is a tensor without gradients, of the shape and dtype of another if one is given."""
    if not isinstance(one, Tensor) or one.requires_grad:
        return False
    return like is None or (one.shape == like.shape and one.dtype == like.dtype)
