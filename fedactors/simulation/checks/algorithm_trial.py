"""Tries an algorithm of the user's for two rounds, before anything runs: clients and server do what they do in a run.

Two clients take two local steps on noise: see `trial_samples`. An algorithm whose server has data is left out: what it
learns from them belongs to the scenario's model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from fedactors.data.base import LabelledSamples
from fedactors.errors import FedactorsError, ScenarioError, UserCodeError
from fedactors.learning.algorithm import Algorithm, Round
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.row_vectors import as_tensors
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, TrainingTask, Vectors
from fedactors.models.network import initial
from fedactors.own_code.user_errors import class_called, in_a_line, told
from fedactors.simulation.checks.trial_samples import CLIENTS, SAMPLES, trial_model, trial_samples
from fedactors.simulation.prepared import Prepared
from fedactors.workload import workload

_ROUNDS = 2


def try_algorithm(prepared: Prepared) -> None:
    """Raise ScenarioError, with the user's line, if the scenario's algorithm cannot do two rounds."""
    algorithm = prepared.scenario.server.algorithm
    model = trial_model(prepared)
    if algorithm.learns or algorithm.centre != "none" or algorithm.shares or model is None:
        return
    samples = trial_samples(prepared, model)
    work = workload(SAMPLES, 2, epochs=1, steps=None)
    task = TrainingTask(model, algorithm, prepared.scenario.seed, (work,) * CLIENTS, prepared.setting)
    central = CentralLearner(model, task.seed, LabelledSamples(samples.x[:0], samples.y[:0]))
    with _telling(algorithm):
        trainer = Trainer(task, samples)
        start = torch.from_numpy(initial(model, task.seed))
        state = _state(algorithm, "start", algorithm.start(start), start)
        kept: list[Vectors | None] = [None] * CLIENTS if algorithm.keeps else []
        for version in range(_ROUNDS):
            chunk = Chunk(version, (0, 1), (0, 0), (version, version), (work.wanted,) * CLIENTS, (0.5, 0.5), 0.01)
            before = torch.get_rng_state()
            learned = trainer.learn(chunk, [_sent(algorithm, state)], kept)
            _refuse_draws(algorithm, before)
            kept = list(learned.kept)
            facts = Round(version, CLIENTS, 1.0, chunk.lr, prepared.setting, prepared.setting.clients, largest=0.5)
            found = algorithm.aggregate(state, as_tensors(learned.sums), facts, central)
            state = _state(algorithm, "aggregate", found, start)


def _refuse_draws(algorithm: Algorithm, before: Tensor) -> None:
    """Refuse an `added_loss` that draws at random, whose values would depend on which process computes it.

    `before` is the state of torch's generator before the local steps. Raises ScenarioError.
    """
    if algorithm.has_added_loss and not torch.equal(before, torch.get_rng_state()):
        raise ScenarioError(
            f"{class_called(type(algorithm))}.added_loss: draws random numbers (accepted: what follows from outputs,"
            " labels and global outputs)"
        )


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
    except UserCodeError as error:
        raise ScenarioError(f"{class_called(type(algorithm))}: {error}") from error
    except FedactorsError:
        raise
    except (Exception, SystemExit) as error:
        said = in_a_line(told(error)) or f"{type(error).__name__}: {error}"
        raise ScenarioError(f"{class_called(type(algorithm))}: tried with two clients: {said}") from error
