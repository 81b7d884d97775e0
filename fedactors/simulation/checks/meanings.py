"""What settings mean together that may not be what their papers mean, in a sentence each."""

from __future__ import annotations

from fedactors.algorithms.participation import Scheme
from fedactors.scenario.model import Scenario

_SETS = {
    "share_of_asked": "its share of those asked, who stand for all (weights: fixed counts the others as silent, as the"
    " paper does; weights: unbiased scales by how many were asked)",
    "fixed": "its share of all members: whoever is not asked counts as silent, as in the paper",
    "unbiased": "its share of all members, scaled up by how many of them were asked",
}


def meanings(scenario: Scenario) -> list[str]:
    """Return sentences about schemes that meet a cohort of not all members, and about decisions on too few losses."""
    return [*_shares(scenario), *_losses(scenario)]


def _shares(scenario: Scenario) -> list[str]:
    server = scenario.server
    scheme = server.participation
    everybody = server.cohort == "all" and server.among == "members"
    if not isinstance(scheme, Scheme) or everybody or server.membership is not None:
        return []
    asked = f"{server.cohort} of {scenario.devices}" if server.cohort != "all" else "those that are on"
    return [f"participation {scheme.name}, where {asked} devices are asked: p^k of a device is {_SETS[scheme.weights]}"]


def _losses(scenario: Scenario) -> list[str]:
    server = scenario.server
    if server.membership is None or server.membership.departures != "auto" or server.evaluate_every == 1:
        return []
    every = server.evaluate_every
    return [
        f"departures: auto fits the losses since the rate last began anew, of which there is one in {every} rounds"
        f" (evaluate_every: {every}); with fewer than three a device that left stays included"
    ]
