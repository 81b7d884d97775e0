"""What is checked of a scenario once its numbers are worked out. Each check raises ScenarioError."""

from __future__ import annotations

from fedactors.errors import ScenarioError
from fedactors.simulation.checks.algorithm_checks import check_alternate, refuse_personal
from fedactors.simulation.checks.attack_checks import check_attacks
from fedactors.simulation.checks.scenario_checks import (
    check_deadline,
    check_reallocation,
    no_round,
)
from fedactors.simulation.checks.tested_clients import check_test_clients
from fedactors.simulation.checks.transform_checks import check_transforms
from fedactors.simulation.checks.validation_checks import check_validation
from fedactors.simulation.prepared import Prepared, least_times


def _check_personal(prepared: Prepared) -> None:
    """Refuse parts of a model that stay at the clients where that has no meaning. Raises ScenarioError."""
    if len(prepared.personal):
        refuse_personal(prepared.scenario.server, prepared.setting)
    check_alternate(prepared.scenario.server, prepared.personal, prepared.workloads)


def _check_reallocation(prepared: Prepared) -> None:
    """Refuse to reassign what the server holds too, or more than there is. Raises ScenarioError."""
    if prepared.reallocates:
        check_reallocation(prepared.scenario, prepared.info, prepared.sizes)


def _check_deadline(prepared: Prepared) -> None:
    """Refuse a deadline that the fastest device cannot meet, even undisturbed. Raises ScenarioError."""
    deadline = prepared.scenario.server.deadline
    if deadline is not None:
        check_deadline(deadline, least_times(prepared).min())


def _check_given(prepared: Prepared) -> None:
    """Refuse files with vectors of the server's state that cannot be used. Raises ScenarioError."""
    prepared.scenario.server.algorithm.given(prepared.model.parameters)


def _check_lookahead(prepared: Prepared) -> None:
    """Refuse to look ahead where what is learned decides who is asked next. Raises ScenarioError."""
    membership = prepared.scenario.server.membership
    if membership and membership.departures == "lookahead" and prepared.clock().steered:
        raise ScenarioError(
            "server.membership.departures: lookahead cannot try futures in which clients are selected by what"
            " was learned (accepted: auto, include or exclude)"
        )


def check_first_round(prepared: Prepared) -> None:
    """Refuse a run that would end without a round, where that may be: let the clock play one. Raises ScenarioError."""
    idle = not all(work.wanted for work in prepared.workloads)
    if idle or prepared.population.behaving or prepared.scenario.server.until is not None:
        clock = prepared.clock()
        if next(clock, None) is None:
            raise no_round(prepared.scenario, clock)


LAST_CHECKS = (
    _check_personal,
    check_transforms,
    check_attacks,
    check_validation,
    check_test_clients,
    _check_reallocation,
    _check_deadline,
    _check_lookahead,
    _check_given,
    check_first_round,
)  # in this order
