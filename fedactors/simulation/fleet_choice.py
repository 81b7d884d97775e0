"""The machines of a run: which fleet it is executed on, and what of a cluster would be asked for in vain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Literal

from fedactors import bits
from fedactors.errors import ClusterError
from fedactors.fleet.base import Fleet, device_of
from fedactors.job_limits import usable_cores
from fedactors.scenario.cluster_options import ClusterOptions
from fedactors.scenario.population import GroupOptions
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.training_tasks import training_task_of

FleetKind = Literal["ray", "local"]


def open_fleet(
    cluster: ClusterOptions,
    kind: FleetKind,
    actors: int | None = None,
    address: str | None = None,
    groups: Sequence[GroupOptions] = (),
    central: bool = False,
    few_vectors: bool = False,
    torch: bool = True,
) -> Fleet:
    """Return the fleet that a run over `groups` is executed on, with a `central` learner or without.

    With `few_vectors` calls may go past Ray, see `has_few_vectors`; `torch` says whether client hosts import it ahead.

    Raises ClusterError if it cannot be had.
    """
    if kind == "local":
        return _local_fleet(cluster, actors, address)
    from fedactors.fleet.layout import Want
    from fedactors.fleet.ray.ray_fleet import RayFleet
    from fedactors.fleet.transport.transport_choice import choose_transport

    joined = address or cluster.address
    return RayFleet(
        actors or cluster.actors or (None if joined else _own_cores(cluster, central)),
        cluster.cpus_per_actor,
        cluster.gpus_per_actor,
        joined,
        server_gpus=cluster.server_gpus,
        central=Want(cluster.central_cpus, cluster.central_gpus) if central else None,
        store=cluster.object_store,
        classes=classes(cluster, groups),
        torch=torch,
        transport=choose_transport(joined, few_vectors=few_vectors),
        environment=bits.variables(cluster.bits),
    )


def _local_fleet(cluster: ClusterOptions, actors: int | None, address: str | None) -> Fleet:
    """Return the fleet of this process alone. Raises ClusterError if another one is wanted."""
    if (actors or 1) > 1 or address:
        raise ClusterError("--fleet local computes in this process (accepted: no --actors and no --address)")
    from fedactors.fleet.local import LocalFleet

    return LocalFleet(device_of(cluster.gpus_per_actor), cluster.server_gpus, cluster.central_gpus)


def lacking_gpus(cluster: ClusterOptions) -> list[str]:
    """Return the keys that ask for GPUs, if torch finds none on this machine; it is imported if there are any."""
    asking = [key for key in ("gpus_per_actor", "server_gpus", "central_gpus") if getattr(cluster, key)]
    if not asking:
        return []
    from torch import cuda

    return [] if cuda.is_available() else [f"cluster.{key}" for key in asking]


def refuse_lacking(cluster: ClusterOptions, kind: FleetKind) -> None:
    """Raise ClusterError if this process is to compute on GPUs, and torch finds none."""
    if kind == "local" and (lacking := lacking_gpus(cluster)):
        raise ClusterError(f"{lacking[0]}: torch finds no GPU here, where --fleet local computes (accepted: 0)")


def _own_cores(cluster: ClusterOptions, central: bool) -> int:
    """Return the cores for client hosts: those that this process may use, less a `central` learner's; at least one."""
    return max(1, int(usable_cores() - cluster.central_cpus * central))


def classes(cluster: ClusterOptions, groups: Sequence[GroupOptions]) -> Any:
    """Return which client hosts need which resources, by the clients of the `groups` they are for."""
    from fedactors.fleet.layout import HostKinds

    wanted = [cluster.resources.get(group.name, {}) for group in groups] or [{}]
    different = [one for number, one in enumerate(wanted) if one not in wanted[:number]]
    first = accumulate((group.count for group in groups[:-1]), initial=0)
    return HostKinds(different, list(first), [different.index(one) for one in wanted])


def has_few_vectors(prepared: Prepared) -> bool:
    """Whether a run has few vectors at a time: not one for each client, nor models of many versions."""
    server = prepared.scenario.server
    keeping = bool(server.algorithm.keeps) or bool(len(prepared.personal)) or bool(prepared.feedback)
    many = keeping or server.aggregation.single
    return not many and not server.timing.asynchronous


def has_centre(prepared: Prepared) -> bool:
    """Whether a central learner works beside the server."""
    return prepared.scenario.server.algorithm.centre in ("before", "beside")


def refuse_idle(prepared: Prepared) -> None:
    """Raise ClusterError if a GPU, or a core of a central learner, is asked for that nothing would be computed on."""
    cluster, server = prepared.scenario.cluster, prepared.scenario.server
    centre = has_centre(prepared)
    if not centre and (kept := [key for key in ("central_cpus", "central_gpus") if getattr(cluster, key)]):
        raise ClusterError(
            f'cluster.{kept[0]}: "{server.algorithm.name}" has no central learner (accepted: leave it out)'
        )
    busy = server.algorithm.learns and not centre
    if cluster.server_gpus and not (busy or server.pretraining or server.dissimilarity_every):
        raise ClusterError(
            f'cluster.server_gpus: under "{server.algorithm.name}" the server adds vectors, on a core, and would leave'
            " the GPU idle (accepted: leave it out)"
        )


def refuse_engine(prepared: Prepared) -> None:
    """Raise ScenarioError if the scenario names an engine that does not support the clients' work on their device."""
    scenario = prepared.scenario
    if scenario.engine is None:
        return
    from fedactors.learning.trainer import check_engine

    check_engine(training_task_of(prepared), device_of(scenario.cluster.gpus_per_actor))
