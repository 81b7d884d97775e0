"""Tries the classes of the user's that a scenario names, before anything runs; those of fedactors are not tried.

torch is imported if there are any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedactors.attacks.base import UpdateAttack
from fedactors.errors import ScenarioError, naming
from fedactors.own_code.user_errors import class_called, is_own
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.replay import play


def try_own_classes(prepared: Prepared) -> None:
    """Try algorithm, aggregation, transforms and attacks. Raises ScenarioError, naming the scenario's file."""
    with naming(prepared.scenario.source):
        _try_algorithm(prepared)
        _try_rows(prepared)


def _try_algorithm(prepared: Prepared) -> None:
    if is_own(prepared.scenario.server.algorithm):
        from fedactors.simulation.trials.algorithm_trial import try_algorithm

        with naming("server.algorithm"):
            try_algorithm(prepared)


def _try_rows(prepared: Prepared) -> None:
    """Try what works on rows of updates: a row for each client."""
    rule = prepared.scenario.server.aggregation
    if rule.single and is_own(rule):
        from fedactors.simulation.trials.rows_trial import try_aggregation

        with naming("server.aggregation"):
            try_aggregation(prepared)
    for chain in (prepared.uplink, prepared.downlink):
        if chain is not None and any(map(is_own, chain.transforms)):
            from fedactors.simulation.trials.rows_trial import try_transforms

            with naming(f"server.{chain.way}"):
                try_transforms(chain)
    for group in prepared.update_attackers:
        if isinstance(group.attack, UpdateAttack) and is_own(group.attack):
            from fedactors.simulation.trials.rows_trial import try_attack

            with naming(f"population.{group.group}.attack"):
                try_attack(group.attack)


def try_own_clock(prepared: Prepared, sample: Mapping[str, Any]) -> None:
    """Play the rounds of a `sample` once more, if classes of the user's have a part in them; it is a play's summary.

    Raises ScenarioError, naming the scenario's file, if the plans are not the same.
    """
    server = prepared.scenario.server
    behaviours = [group.make() for group in prepared.population.behaving]
    policies = (server.selection, server.timing, server.participation, *behaviours)
    own = sorted({class_called(type(one)) for one in policies if is_own(one)})
    if own and sample["plans"] and play(prepared, None, sample["plans"])["digests"] != sample["digests"]:
        raise ScenarioError(
            f"{prepared.scenario.source}: {' or '.join(own)}: two plays of the same rounds have other plans (accepted:"
            " random numbers of the generator that methods are given, or device.random, and no state that a play leaves"
            " behind)"
        )
