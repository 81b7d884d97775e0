"""Refuses what does not go with the algorithm of a scenario: optimisers, aggregations, personal parts of a model."""

from __future__ import annotations

from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import Algorithm, TaskSetting
from fedactors.scenario.server_options import ServerOptions


def check_algorithm(server: ServerOptions, setting: TaskSetting) -> None:
    """Refuse an algorithm, its optimiser or an aggregation that the setting does not fit. Raises ScenarioError."""
    refuse_optimizer(server.algorithm, setting)
    server.algorithm.check(setting)
    if problem := server.aggregation.problem(setting.cohort):
        raise ScenarioError(f"server.aggregation: {problem}")


def refuse_optimizer(algorithm: Algorithm, setting: TaskSetting) -> None:
    """Refuse a client optimiser that the algorithm cannot use. Raises ScenarioError."""
    asked = setting.optimizer.name
    name = algorithm.name
    if not setting.optimizer.plain and algorithm.optimizer(setting) is not setting.optimizer:
        found = "sgd with options" if asked == "sgd" else asked
        raise ScenarioError(f'server.local.optimizer: found "{found}", but "{name}" brings its own (accepted: none)')
    if not setting.optimizer.follows_gradient and (reason := algorithm.wants_sgd):
        found = "sgd with momentum" if asked == "sgd" else asked
        raise ScenarioError(f'server.local.optimizer: found "{found}" with "{name}": {reason} (accepted: sgd)')


def refuse_personal(server: ServerOptions, setting: TaskSetting) -> None:
    """Refuse parts of a model that stay at the clients where that has no meaning. Raises ScenarioError."""
    algorithm = server.algorithm
    if reason := algorithm.refuses_personal(setting):
        raise ScenarioError(
            f'server.personal: "{algorithm.name}" cannot leave parts of a model at the clients, or local buffers:'
            f" {reason} (accepted: fedavg, fedprox, scaffold and others that send only what clients trained)"
        )
    if server.dissimilarity_every is not None:
        raise ScenarioError("server.dissimilarity_every: compares gradients at one model (accepted: nothing personal)")
