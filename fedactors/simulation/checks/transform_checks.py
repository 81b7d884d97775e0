"""Refuses transforms of updates and models that do not go with each other or with the rest of a scenario."""

from __future__ import annotations

from importlib.util import find_spec

from fedactors.clock.device_columns import Population
from fedactors.clock.timings.hierarchical import Hierarchical
from fedactors.data.server.server_data import holds_copies
from fedactors.errors import ScenarioError
from fedactors.learning.traffic.arrived import follows_departures
from fedactors.plan import NEVER
from fedactors.privacy.guarantee import problem
from fedactors.privacy.unnoised import RunFacts, names_changes
from fedactors.simulation.checks.noiseless_uploads import refuse_noiseless_uploads
from fedactors.simulation.prepared import Prepared
from fedactors.transforms.chain import Chain


def check_transforms(prepared: Prepared) -> None:
    """Refuse transforms that do not go together, or not with the algorithm. Raises ScenarioError."""
    if prepared.uplink is not None:
        _check_uplink(prepared, prepared.uplink)
    if prepared.downlink is not None:
        _check_downlink(prepared, prepared.downlink)
    for chain in (prepared.uplink, prepared.downlink):
        if chain is not None and not chain.layout.size:
            raise ScenarioError(f"server.{chain.way}: everything stays at the clients (accepted: none)")
    if prepared.scenario.server.privacy is not None:
        _check_privacy(prepared)
    _check_sums(prepared)
    if prepared.scenario.server.timing.deviation:
        _check_deviation(prepared)


def _check_uplink(prepared: Prepared, chain: Chain) -> None:
    """Refuse transforms of updates where what is sent, or summed, is not what they are for. Raises ScenarioError."""
    server = prepared.scenario.server
    if not server.algorithm.changes:
        raise ScenarioError(
            f'server.uplink: "{server.algorithm.name}" needs updates to the last bit, because its server works out more'
            " from them (accepted: none, or another algorithm)"
        )
    if not names_changes(type(server.algorithm)):
        raise ScenarioError(
            f'server.uplink: "{server.algorithm.name}" says what clients upload, and not which of that are changes of'
            ' the model (accepted: a line such as changes = ("delta",) in its class, with the names that upload gives)'
        )
    if server.secure is not None and not chain.sums_whole:
        raise ScenarioError(
            "server.uplink: secure aggregation sums whole vectors, and compressed ones cannot be summed (accepted:"
            " clip, adaptive-clip, mask and noise; server.secure.bits says how long a value is)"
        )
    if chain.noise is not None and server.aggregation.single:
        raise ScenarioError(
            f'server.uplink: {chain.noise.name} is added to a sum, and aggregation "{server.aggregation.name}" makes'
            " none (accepted: added: clients, or aggregation mean)"
        )
    if prepared.broadcast_values and (server.timing.asynchronous or server.aggregation.single):
        raise ScenarioError(
            "server.uplink: what adapts to the updates of a round needs rounds, and sums of updates (accepted: clip in"
            " place of adaptive-clip, or timing synchronous and aggregation mean)"
        )


def _check_sums(prepared: Prepared) -> None:
    """Refuse noise of the server where updates are summed a second time, without it. Raises ScenarioError."""
    chain, algorithm = prepared.uplink, prepared.scenario.server.algorithm
    if chain is None or chain.noise is None:
        return
    further = set(algorithm.unweighted) - set(algorithm.changes)
    if further and algorithm.payload(prepared.setting).up <= len(algorithm.changes):  # no vector travels for these sums
        raise ScenarioError(
            f'server.uplink: {chain.noise.name} is added to one sum, and "{algorithm.name}" sums each update twice, by'
            " weights and as it is (accepted: gaussian or laplace with added: clients)"
        )


def _check_deviation(prepared: Prepared) -> None:
    """Refuse weights that depend on updates where more depends on the weights. Raises ScenarioError."""
    server, uplink = prepared.scenario.server, prepared.uplink
    reasons = {
        f'algorithm "{server.algorithm.name}" sums more than the updates of models': (
            not server.algorithm.sums_updates_only
        ),
        f'timing "{server.timing.name}" mixes models by weights that are known before': server.timing.mixes,
        f'aggregation "{server.aggregation.name}" has no weights': server.aggregation.single,
        "noise is made for weights that are known before": uplink is not None and uplink.noise is not None,
        "epsilon is counted by weights that are known before": server.privacy is not None,
    }
    if reason := next((text for text, holds in reasons.items() if holds), ""):
        raise ScenarioError(
            f"server.timing.staleness.beta: weighs updates by how they differ, and {reason} (accepted: beta: 0)"
        )


def _check_downlink(prepared: Prepared, chain: Chain) -> None:
    """Refuse what a server keeps from message to message where there are several servers. Raises ScenarioError."""
    server = prepared.scenario.server
    if isinstance(server.timing, Hierarchical) and (chain.differs or chain.keeps(server.algorithm.sends)):
        raise ScenarioError(
            "server.downlink: error feedback and differences are of one server, and with timing hierarchical each edge"
            " sends models of its own (accepted: error_feedback: false, no lowrank, no difference)"
        )


def _check_privacy(prepared: Prepared) -> None:
    """Refuse to account for privacy where nothing can be guaranteed, or without the library. Raises ScenarioError."""
    server = prepared.scenario.server
    leave = _may_depart(prepared.population) and getattr(server.membership, "departures", "") != "include"
    facts = RunFacts(
        uploads=server.algorithm.payload(prepared.setting).up,
        buffers=prepared.travelling_buffers,
        copies=server.data is not None and holds_copies(server.data),
        takes_back=leave and follows_departures(server.algorithm),
        reassigns=prepared.reallocates,
        has_accuracy=prepared.scenario.task.has_accuracy,
    )
    if reason := problem(server, facts):
        raise ScenarioError(f"server.privacy: {reason}")
    refuse_noiseless_uploads(prepared)
    if find_spec("dp_accounting") is None:
        raise ScenarioError(
            "server.privacy: needs the package dp-accounting (accepted: pip install 'fedactors[privacy]', or no"
            " server.privacy)"
        )


def _may_depart(population: Population) -> bool:
    """Whether a device may leave for good: at a time that is known, or because a behaviour of the user's says so."""
    behaviours = (type(group.make()).__module__ for group in population.behaving)
    return bool((population.depart < NEVER).any()) or not all(one.startswith("fedactors.") for one in behaviours)
