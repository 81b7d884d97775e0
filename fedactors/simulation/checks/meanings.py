"""What settings mean together that may not be what their papers mean, in a sentence each."""

from __future__ import annotations

from fedactors.algorithms.participation import Scheme
from fedactors.privacy.guarantee import sentences
from fedactors.registry import BUILTIN
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.default_weights import weights_drawn, weights_of_timing
from fedactors.simulation.checks.server_rates import rate_of_one

_LOW = 1e-3  # a rate at which it is 7e-5
_ERROR = 7e-8  # of a mean gradient from a difference of models in float32, times the rate
_SHARES = {
    "share_of_asked": "its device's share of the samples of those asked",
    "fixed": "its device's share of all samples, as in Ruan et al.",
    "unbiased": "its device's share of all samples, scaled up as only some are asked",
}


def meanings(scenario: Scenario) -> list[str]:
    """Return sentences about a scenario whose meaning is easily missed.

    About attackers, schemes that meet a cohort of not all members, weights that do not say what is minimised, digits
    lost in mean gradients, decisions on too few losses, what noise guarantees, a server's rate that is not that of
    federated averaging, weights by default that are not those of the algorithm, and samples that count twice.
    """
    found = [*_attackers(scenario), *_shares(scenario), *_plain_mean(scenario)]
    found += [*_lost_digits(scenario), *_losses(scenario), *weights_drawn(scenario)]
    found += sentences(scenario.server, scenario.devices)
    return [*found, *rate_of_one(scenario), *weights_of_timing(scenario)]


def _attackers(scenario: Scenario) -> list[str]:
    """Return a sentence about each group of attackers."""
    server = scenario.server
    follows = server.selection.steers or (server.membership is not None and server.membership.departures == "auto")
    plans = "; who is asked follows from losses, so plans are others than without attackers" * follows
    return [
        f"population.{group.name}: {group.count:,} of {scenario.devices:,} devices attack ({group.attack.name}){plans}"
        for group in scenario.population
        if group.attack is not None
    ]


def _shares(scenario: Scenario) -> list[str]:
    """Return a sentence about a participation scheme that meets a cohort of not all members."""
    server = scenario.server
    scheme = server.participation
    everybody = server.cohort == "all" and server.among == "members"
    if not isinstance(scheme, Scheme) or everybody or server.membership is not None:
        return []
    asked = f"{server.cohort} of {scenario.devices} devices" if server.cohort != "all" else "only devices that are on"
    others = "; ".join(f"{name} takes {share}" for name, share in _SHARES.items() if name != scheme.weights)
    return [
        f"participation {scheme.name}, where {asked} are asked: an update is weighted by {_SHARES[scheme.weights]}"
        f" (server.participation.weights={others})"
    ]


def _plain_mean(scenario: Scenario) -> list[str]:
    """Return a sentence about weights of updates beside a mean of what clients keep, which has none."""
    algorithm, weights = scenario.server.algorithm, scenario.server.participation.name
    if not algorithm.keeps or not algorithm.unweighted or algorithm.scales_by_share or weights == "uniform":
        return []
    instead = " (alpha_by: share minimises the mean by samples)" if hasattr(algorithm, "alpha_by") else ""
    return [
        f"algorithm {algorithm.name} averages what clients keep over all of them alike, so it minimises the plain mean"
        f" of their losses: participation {weights} changes the way there, and not where it leads{instead}"
    ]


def _lost_digits(scenario: Scenario) -> list[str]:
    """Return a sentence about gradients that are worked out from differences of models at a low rate."""
    server, local = scenario.server, scenario.server.local
    lowest = min(server.schedule.at(1), server.schedule.at(server.timing.scheduled(server.rounds)))
    if not server.algorithm.wants_gradient_sum or lowest > _LOW:
        return []
    own_engine = scenario.engine is not None and scenario.engine not in BUILTIN["engines"]
    reasons = {
        f'engine "{scenario.engine}" may not sum gradients': own_engine,
        "gradients are clipped": local.clip is not None,
        f'the optimiser "{local.optimizer.name}" has options': not local.optimizer.plain,
    }
    reason = next((text for text, holds in reasons.items() if holds), "")
    if not reason:
        return []
    return [
        f"algorithm {server.algorithm.name}: {reason}, so mean gradients come from differences of models, which lose"
        f" digits as the rate falls: at {lowest:g} their relative error is about {_ERROR / lowest:.1g}"
    ]


def _losses(scenario: Scenario) -> list[str]:
    server = scenario.server
    if server.membership is None or server.membership.departures != "auto" or server.evaluate_every == 1:
        return []
    every = server.evaluate_every
    return [
        f"departures: auto fits the losses since the rate last began anew, of which there is one in {every} rounds"
        f" (evaluate_every: {every}); with fewer than three a device that left stays included"
    ]
