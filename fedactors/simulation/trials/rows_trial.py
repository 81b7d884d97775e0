"""Tries attacks, transforms and aggregations of the user's on made-up updates, before anything runs.

Updates are rows, one of each client. What an attack or a transform makes of a row follows from that row alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor

from fedactors.attacks.base import UpdateAttack
from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import Round
from fedactors.learning.combining import Aggregation
from fedactors.own_code.user_errors import is_own
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.trials.trial_calls import (
    OwnCalls,
    described,
    refuse_other_rows,
    refuse_shape,
    telling_trial,
)
from fedactors.streams import Purpose
from fedactors.transforms.base import Compressor, Given, UpdateTransform
from fedactors.transforms.chain import Chain
from fedactors.transforms.draws import SenderDraws

_VALUES = 50  # of an update that is attacked
_MOST = 500_000  # values of all updates that are combined
_LONGEST = 2_000_000  # values of an update that is transformed
_MESSAGES = 2  # of each sender: the second one after what it kept from the first
_OWN_ROW = "rows that follow from their own row, {} alone, as rows.norm(dim=1, keepdim=True) does"


def try_attack(attack: UpdateAttack) -> None:
    """Raise ScenarioError, with the user's line, if what two attackers send are no updates, or depends on both."""
    calls, rows = OwnCalls(attack), _updates(0, 2, _VALUES)
    accepted = _OWN_ROW.format("and from draws,")
    with telling_trial(attack, "on two updates"):
        sent = calls.call("updates", {"rows": rows, "draws": _draws(2)}, accepted)
        refuse_shape(calls.who("updates"), sent, tuple(rows.shape), finite=True)
        refuse_other_rows(
            calls.who("updates"),
            {"rows": sent},
            lambda row: {"rows": calls.bound("updates")(rows[row : row + 1], _draws(2).only(row))},
            accepted,
        )


def try_transforms(chain: Chain) -> None:
    """Raise ScenarioError, with the user's line, if a transform of the user's in a chain cannot be one.

    The chain is given two messages of two clients, or of the server. Where updates are long nothing is tried.
    """
    parameters = chain.layout.parameters
    if parameters > _LONGEST:
        return
    senders = 2 if chain.way == "uplink" else 1
    tried = deepcopy(chain)
    tried.transforms = tuple(_watched(one) if is_own(one) else one for one in chain.transforms)
    broadcast = chain.broadcast_values(["delta"])
    kept = {name: torch.zeros(senders, length) for name, length in chain.keeps(["delta"]).items()}
    for number in range(_MESSAGES):
        rows, fresh = tried.sent("delta", _updates(number, senders, parameters), kept, _draws(senders), broadcast)
        kept = {name: fresh[name] for name in kept}
        tried.received("delta", rows.sum(0), _draws(1), 1.0, broadcast)


def _watched(own: UpdateTransform) -> UpdateTransform:
    """Return a copy of a transform in which calls of the method that the user wrote are tried."""
    compresses = isinstance(own, Compressor) and type(own).apply is Compressor.apply
    method, found = "compress" if compresses else "apply", deepcopy(own)
    vars(found)[method] = partial(_transformed, OwnCalls(own), method)  # found before the method of the class
    return found


def _transformed(
    calls: OwnCalls[UpdateTransform], method: str, rows: Tensor, kept: Mapping[str, Tensor], given: Given
) -> Any:
    """Return what a transform makes of rows, and what senders keep. Raises ScenarioError if it cannot be used."""
    who, accepted = calls.who(method), _OWN_ROW.format("from kept and from given.draws")
    before = given._replace(draws=deepcopy(given.draws))
    with telling_trial(calls.own, "on updates"):
        found = calls.call(method, {"rows": rows, "kept": kept, "given": given}, accepted)
        named = _named(who, found)
        for name, length in {"rows": rows.shape[1], **_kept(calls.own, method, given)}.items():
            if name not in named:
                raise ScenarioError(f"{who}: returned no {name} (accepted: it beside the rows, in the dictionary)")
            refuse_shape(who, named[name], (len(rows), length), f"{name} as ", finite=True)

        def alone(row: int) -> Mapping[str, Tensor]:
            held = {name: one[row : row + 1] for name, one in kept.items()}
            its = before._replace(draws=before.draws.only(row))
            return _named(who, calls.bound(method)(rows[row : row + 1], held, its))

        refuse_other_rows(who, named, alone, accepted)
    return found


def _kept(own: UpdateTransform, method: str, given: Given) -> dict[str, int]:
    """Return the lengths of what a method returns beside the rows, by name."""
    found = own.state(given.layout)
    if own.first_broadcast_value is not None:
        found = {**found, "count": 1}
    if method == "compress" and getattr(own, "error_feedback", False):
        found = {name: length for name, length in found.items() if name != "error"}  # `Compressor` returns it
    return found


def _named(who: str, found: Any) -> dict[str, Any]:
    """Return what a transform returned by name, "rows" first. Raises ScenarioError unless it is a pair."""
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping):
        return {"rows": found[0], **found[1]}
    raise ScenarioError(
        f"{who}: returned {described(found)} (accepted: rows, and a dictionary of what each sender keeps: return rows,"
        " {})"
    )


def try_aggregation(prepared: Prepared) -> None:
    """Raise ScenarioError, with the user's line, if an aggregation of the user's does not make one update of many."""
    rule: Aggregation = prepared.scenario.server.aggregation
    count = prepared.scenario.server.quorum or prepared.setting.cohort
    values = max(1, min(prepared.model.parameters, _MOST // count))
    facts = Round(0, count, 1.0, 0.1, prepared.setting, prepared.setting.clients, largest=1 / count)
    facts = facts._replace(updates=((1 / count, 0),) * count)
    calls, method = OwnCalls(rule), "combine"
    further: dict[str, Any] = {}
    if type(rule).combine_in_round is not Aggregation.combine_in_round:
        method, further = "combine_in_round", {"facts": facts, "compared": values}
    with telling_trial(rule, f"on {count} updates"):
        for number in range(_MESSAGES):
            rows = _updates(number, count, values)
            found = calls.call(method, {"rows": rows, **further}, "what follows from rows and options alone")
            refuse_shape(calls.who(method), found, (values,), finite=True)


def _updates(number: int, clients: int, values: int) -> Tensor:
    """Return made-up updates, `(clients, values)`: others for each number."""
    return torch.randn(clients, values, generator=torch.Generator().manual_seed(number))


def _draws(senders: int) -> SenderDraws:
    """Return the random numbers of so many senders."""
    return SenderDraws(0, Purpose.ATTACK, range(senders), [0] * senders)
