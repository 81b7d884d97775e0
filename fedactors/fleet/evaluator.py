"""The worker that evaluates models, on test sets and at single clients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.fleet.workers import Worker
from fedactors.learning.client_evaluation import client_model, evaluate_clients
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.fine_tuning import tuner_of
from fedactors.learning.training_task import ClientMeasures, TrainingData, TrainingTask, Vectors
from fedactors.metric_names import of_validation


class Evaluator(Worker):
    """Evaluates models on the test set while the clients train."""

    def __init__(self, task: TrainingTask, evaluation_set: EvaluationSet, samples: TrainingData | None = None) -> None:
        super().__init__("cpu")
        self._tuner = tuner_of(task, samples)
        self._evaluator = ModelEvaluator(task.model, evaluation_set, "cpu", task.metrics)
        self._validation: ModelEvaluator | None = None
        if (validation := evaluation_set.validation) is not None:
            self._validation = ModelEvaluator(task.model, validation, "cpu", task.metrics)
        self._holdout = task.holdout
        central = evaluation_set.central
        self._central = np.zeros(0, np.int64) if central is None else np.flatnonzero(central)
        self._personal = task.personal
        self._on_all = task.evaluates_on_all

    def evaluate(self, public: Vectors, audience: np.ndarray | None = None) -> dict[str, float]:
        """Return the measures of the model in `public` on the test set, or on the hold-out data of an audience.

        `audience` is a mask, `(clients,)`. What is like the central learner's data is no client's, and counts with any
        audience; one without hold-out data has no measures. Those of the samples for
        validation, where there are some, stand beside those of the test set.
        """
        if audience is None or self._holdout is None:
            validation = {} if self._validation is None else of_validation(self._validation.evaluate(public["x"]))
            return self._evaluator.evaluate(public["x"]) | validation
        held = [self._holdout.of(client) for client in np.flatnonzero(audience).tolist()]
        further = self._central if any(map(len, held)) else self._central[:0]
        return self._evaluator.evaluate(public["x"], np.concatenate([*held, further]))

    def evaluate_clients(
        self, public: Vectors, version: int, clients: Sequence[int], *kept: Vectors | None
    ) -> tuple[ClientMeasures, ...]:
        """Return the measures of each client, with what it keeps or with `public`, after a round from `version`."""
        own = (client_model(public["x"], mine, self._personal) for mine in kept or [None] * len(clients))
        models = own if self._tuner is None else map(partial(self._tuner.tuned, version), clients, own)
        return evaluate_clients(self._evaluator, clients, models, None if self._on_all else self._holdout)
