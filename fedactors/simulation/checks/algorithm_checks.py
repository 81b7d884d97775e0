"""Refuses what does not go with the algorithm of a scenario: optimisers, aggregations, personal parts of a model."""

from __future__ import annotations

from collections.abc import Sequence, Sized

from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import Algorithm, TaskSetting
from fedactors.scenario.server_options import ServerOptions
from fedactors.workload import Workload

_AGES = 4  # that are tried


def check_algorithm(server: ServerOptions, setting: TaskSetting) -> None:
    """Refuse an algorithm, its optimiser or an aggregation that the setting does not fit. Raises ScenarioError.

    So is a timing that does not say what an older update counts.
    """
    for staleness in range(_AGES):
        server.timing.weight(staleness)
    refuse_optimizer(server.algorithm, setting)
    server.algorithm.check(setting)
    if problem := server.aggregation.problem(setting.cohort):
        raise ScenarioError(f"server.aggregation: {problem}")
    if server.quorum is not None and (problem := server.aggregation.problem(server.quorum)):
        raise ScenarioError(f"server.aggregation: a round ends with server.quorum updates, and {problem}")


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
    if reason := _needs_the_whole_model(algorithm, setting):
        raise ScenarioError(
            f'server.personal: "{algorithm.name}" cannot leave parts of a model at the clients, or local buffers:'
            f" {reason} (accepted: fedavg, fedprox, scaffold and others that send only what clients trained)"
        )
    if server.dissimilarity_every is not None:
        raise ScenarioError("server.dissimilarity_every: compares gradients at one model (accepted: nothing personal)")
    departures = getattr(server.membership, "departures", "")
    if departures in ("auto", "lookahead"):
        raise ScenarioError(
            f"server.membership.departures: {departures} decides by losses of the server's model, in which parts that"
            " stay at the clients are never trained (accepted: include or exclude, or nothing personal)"
        )


def _needs_the_whole_model(algorithm: Algorithm, setting: TaskSetting) -> str:
    """Return why parts of the model cannot stay at the clients, or nothing if they can."""
    if algorithm.centre != "none":
        return "a central learner trains the whole model"
    if algorithm.learns:
        return "its server trains the whole model"
    brings = algorithm.optimizer(setting) is not setting.optimizer
    sends_more = algorithm.payload(setting).up > len(algorithm.changes)
    return "it brings an optimiser whose state is averaged" if brings and sends_more else ""


def check_alternate(server: ServerOptions, personal: Sized, works: Sequence[Workload]) -> None:
    """Refuse phases of trips where one of them would be empty, or steps must be alike. Raises ScenarioError."""
    alternate = server.alternate
    if alternate is None:
        return
    if not len(personal):
        raise ScenarioError("server.alternate: nothing stays at the clients (accepted: it with server.personal)")
    if reason := server.algorithm.wants_sgd:
        raise ScenarioError(
            f'server.alternate: "{server.algorithm.name}" wants each step to move the whole model: {reason}'
            " (accepted: fedavg, fedprox and others that send only what clients trained)"
        )
    if not any(alternate.steps_of(work) < work.wanted for work in works):
        raise ScenarioError(
            "server.alternate: no client has steps left for the shared part (accepted: more server.local.epochs or"
            " steps, of which these are the first)"
        )
