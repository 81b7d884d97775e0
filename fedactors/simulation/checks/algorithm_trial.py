"""Tries an algorithm of the user's for two rounds, before anything runs: clients and server do what they do in a run.

Two clients take two local steps on noise, with a model of one layer that has about as many parameters as the
scenario's, but not many. An algorithm whose server has data is left out: what it learns from them belongs to the
scenario's model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedactors.data.base import LabelledSamples
from fedactors.data.partitions.assignment import contiguous
from fedactors.errors import FedactorsError, ScenarioError
from fedactors.learning.algorithm import Algorithm, Round
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.row_vectors import as_tensors
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, TrainingData, TrainingTask, Vectors
from fedactors.models.layers import Model
from fedactors.models.network import initial
from fedactors.models.paper_models import Logistic
from fedactors.own_code.user_errors import class_called, in_a_line, told
from fedactors.simulation.prepared import Prepared
from fedactors.workload import workload

_MOST = 20_000  # parameters
_ROUNDS = 2
_CLIENTS = 2
_SAMPLES = 4  # of each client


def try_algorithm(prepared: Prepared) -> None:
    """Raise ScenarioError, with the user's line, if the scenario's algorithm cannot do two rounds."""
    algorithm = prepared.scenario.server.algorithm
    if algorithm.learns or algorithm.centre != "none" or algorithm.shares:
        return
    model = _model(prepared.model.parameters)
    samples = _noise(model)
    work = workload(_SAMPLES, 2, epochs=1, steps=None)
    task = TrainingTask(model, algorithm, prepared.scenario.seed, (work,) * _CLIENTS, prepared.setting)
    central = CentralLearner(model, task.seed, LabelledSamples(samples.x[:0], samples.y[:0]))
    with _telling(algorithm):
        trainer = Trainer(task, samples)
        start = torch.from_numpy(initial(model, task.seed))
        state = _state(algorithm, "start", algorithm.start(start), start)
        kept: list[Vectors | None] = [None] * _CLIENTS if algorithm.keeps else []
        for version in range(_ROUNDS):
            chunk = Chunk(version, (0, 1), (0, 0), (version, version), (work.wanted,) * _CLIENTS, (0.5, 0.5), 0.01)
            learned = trainer.learn(chunk, [_sent(algorithm, state)], kept)
            kept = list(learned.kept)
            facts = Round(version, _CLIENTS, 1.0, chunk.lr, prepared.setting, prepared.setting.clients, largest=0.5)
            found = algorithm.aggregate(state, as_tensors(learned.sums), facts, central)
            state = _state(algorithm, "aggregate", found, start)


def _model(parameters: int) -> Model:
    """Return a model of one dense layer with about so many parameters, if those are not too many."""
    return Logistic(init="uniform").build((max(1, min(parameters, _MOST) // 2 - 1),), 2)


def _noise(model: Model) -> TrainingData:
    draws = np.random.Generator(np.random.Philox(0))
    x = draws.random((_CLIENTS * _SAMPLES, *model.input_shape), dtype=np.float32)
    return TrainingData(x, draws.integers(0, 2, len(x)), contiguous(np.full(_CLIENTS, _SAMPLES)))


def _sent(algorithm: Algorithm, state: Mapping[str, Tensor]) -> Vectors:
    """Return what clients are sent. Raises ScenarioError if the state lacks it."""
    if lacking := [name for name in algorithm.sends if name not in state]:
        kind = class_called(type(algorithm))
        raise ScenarioError(f"{kind}: sends {lacking[0]}, which is not in the state (found: {', '.join(state)})")
    return {name: state[name].numpy() for name in algorithm.sends}


def _state(algorithm: Algorithm, method: str, found: Any, start: Tensor) -> dict[str, Tensor]:
    """Return what `method` returned as the server's state. Raises ScenarioError if it is none."""
    x = found.get("x") if isinstance(found, Mapping) else None
    if isinstance(x, Tensor) and x.shape == start.shape and all(isinstance(one, Tensor) for one in found.values()):
        return dict(found)
    what = f"a dictionary with {', '.join(map(str, found))}" if isinstance(found, Mapping) else type(found).__name__
    raise ScenarioError(
        f"{class_called(type(algorithm))}.{method}: returned {what} (accepted: a dictionary of tensors, with the model"
        " as x, (parameters,))"
    )


@contextmanager
def _telling(algorithm: Algorithm) -> Iterator[None]:
    """Turn what the user's code raises, and what is raised by what it returned, into one ScenarioError."""
    try:
        yield
    except FedactorsError:
        raise
    except (Exception, SystemExit) as error:
        said = in_a_line(told(error)) or f"{type(error).__name__}: {error}"
        raise ScenarioError(f"{class_called(type(algorithm))}: tried with two clients: {said}") from error
