"""The training task of a run: what hosts are given, what a check chooses an engine for, and what a forecast times."""

from __future__ import annotations

from fedactors.data.holdings import Holdings
from fedactors.learning.combining import Aggregation
from fedactors.learning.traffic.deviation import DeviationWeights
from fedactors.learning.training_task import TrainingTask
from fedactors.scenario.server_options import ServerOptions
from fedactors.simulation.prepared import Prepared
from fedactors.workload import FineTuning, PretrainingWork


def training_task_of(prepared: Prepared, holdout: Holdings | None = None) -> TrainingTask:
    """Return what does not change in a run; `holdout` says who has which test samples, which a run alone needs."""
    scenario = prepared.scenario
    server = scenario.server
    evaluation = server.evaluation
    return TrainingTask(
        model=prepared.model,
        algorithm=server.algorithm,
        seed=scenario.seed,
        workloads=tuple(prepared.workloads),
        setting=prepared.setting,
        pretraining=PretrainingWork(prepared.pretraining, server.pretraining.lr) if server.pretraining else None,
        holdout=holdout,
        returns_client_losses=server.selection.steers,
        engine=scenario.engine,
        personal=prepared.personal,
        personal_steps=prepared.personal_steps,
        evaluates_on_all=evaluation is not None and evaluation.on == "test",
        fine_tuning=_fine_tuning_of(server),
        evaluates_own=evaluation is None or evaluation.model == "own",
        clip=server.local.clip,
        metrics=tuple(metric.spec() for metric in scenario.task.metrics),
        aggregation=_single_rule(server),
        given=server.algorithm.given(prepared.model.parameters),
        uplink=prepared.uplink,
        downlink=prepared.downlink,
        attackers=prepared.update_attackers,
    )


def _fine_tuning_of(server: ServerOptions) -> FineTuning | None:
    """Return what clients do before they are evaluated, if they do anything."""
    fine = server.evaluation.fine_tune if server.evaluation else None
    return None if fine is None else FineTuning(fine.epochs, fine.steps, fine.batch or server.local.batch, fine.lr)


def _single_rule(server: ServerOptions) -> Aggregation | None:
    """Return what combines single updates; None where they are summed."""
    if beta := server.timing.deviation:
        return DeviationWeights(beta=beta)
    rule: Aggregation = server.aggregation
    return rule if rule.single else None
