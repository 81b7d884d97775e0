"""Checks whose the test samples are, where each client is to be evaluated on its own, and says which are nobody's."""

from __future__ import annotations

from fedactors.data.partitions.natural import NaturalPartition
from fedactors.data.partitions.partition import AssignedPartition
from fedactors.errors import ScenarioError
from fedactors.scenario.server_options import ServerOptions
from fedactors.simulation.prepared import Prepared

_SHOWN = 5  # names of clients


def holds_out(server: ServerOptions) -> bool:
    """Whether test samples are given to clients."""
    return server.membership is not None or (server.evaluation is not None and server.evaluation.on == "held_out")


def check_test_clients(prepared: Prepared) -> None:
    """Refuse to give test samples to clients of which none has any, or more than there are. Raises ScenarioError."""
    if not holds_out(prepared.scenario.server):
        return
    _refuse_too_many(prepared)
    found = prepared.info.test_clients
    natural = isinstance(prepared.scenario.task.partition, NaturalPartition)
    if not natural or found is None or found.known:
        return
    asks = "membership" if prepared.scenario.server.membership is not None else "evaluation"
    if found.untrained:
        said = f"none of the {len(found.untrained):,} test clients has training samples: {_named(found.untrained)}"
    else:
        said = "the test samples do not come by client"
    raise ScenarioError(
        f'server.{asks}: clients are evaluated on their own test samples, and of "{prepared.info.name}" {said}'
        " (accepted: test samples by client, of clients that train; another partition than natural; or"
        " server.evaluation.on: test, the whole test set)"
    )


def _refuse_too_many(prepared: Prepared) -> None:
    """Refuse more `test_samples` of all clients than there are, unless they are drawn again. Raises ScenarioError."""
    partition, info = prepared.scenario.task.partition, prepared.info
    clients = prepared.scenario.devices
    if not isinstance(partition, AssignedPartition) or partition.test_samples is None or partition.replace:
        return
    if (wanted := partition.test_samples * clients) > info.test_size:
        raise ScenarioError(
            f'task.partition.test_samples: {wanted:,} wanted by {clients:,} clients, "{info.name}" has'
            f" {info.test_size:,} (accepted: fewer test samples, fewer clients, or replace: true)"
        )


def remarks_on_test_clients(prepared: Prepared) -> list[str]:
    """Return a sentence about test clients that have no training samples, if there are some."""
    found = prepared.info.test_clients
    natural = isinstance(prepared.scenario.task.partition, NaturalPartition)
    if not natural or found is None or not found.untrained or not found.known:
        return []
    count = len(found.untrained)
    plural = count > 1
    aside = " or for validation" if prepared.scenario.task.validation is not None else ""
    return [
        f"{count:,} of {count + found.known:,} test clients {'have' if plural else 'has'} no training samples"
        f" ({_named(found.untrained)}): {'their' if plural else 'its'} {found.samples:,} test samples are in the test"
        f" set of the server{aside}, and no client is evaluated on them"
    ]


def _named(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
