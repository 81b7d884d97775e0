"""Refuses transforms of updates and models that do not go with each other or with the rest of a scenario."""

from __future__ import annotations

from importlib.util import find_spec

from fedactors.errors import ScenarioError
from fedactors.privacy.guarantee import problem
from fedactors.simulation.prepared import Prepared


def check_transforms(prepared: Prepared) -> None:
    """Refuse transforms that do not go together, or not with the algorithm. Raises ScenarioError."""
    server = prepared.scenario.server
    algorithm, uplink = server.algorithm, prepared.uplink
    if uplink is not None and not algorithm.changes:
        raise ScenarioError(
            f'server.uplink: "{algorithm.name}" needs updates to the last bit, because its server works out more from'
            " them (accepted: none, or another algorithm)"
        )
    if uplink is not None and uplink.noise is not None and server.aggregation.single:
        raise ScenarioError(
            f'server.uplink: {uplink.noise.name} is added to a sum, and aggregation "{server.aggregation.name}" makes'
            " none (accepted: added: clients, or aggregation mean)"
        )
    if server.privacy is not None:
        _check_privacy(prepared)
    if prepared.downlink is not None and not prepared.downlink.layout.size:
        raise ScenarioError("server.downlink: everything stays at the clients (accepted: none)")


def _check_privacy(prepared: Prepared) -> None:
    """Refuse to account for privacy where nothing can be guaranteed, or without the library. Raises ScenarioError."""
    server = prepared.scenario.server
    uploads = server.algorithm.payload(prepared.setting).up
    if reason := problem(server, uploads, prepared.travelling_buffers):
        raise ScenarioError(f"server.privacy: {reason}")
    if find_spec("dp_accounting") is None:
        raise ScenarioError(
            "server.privacy: needs the package dp-accounting (accepted: pip install 'fedactors[privacy]', or no"
            " server.privacy)"
        )
