"""Tries an attack of the user's on made-up updates, before anything runs."""

from __future__ import annotations

from typing import Any

import torch

from fedactors.attacks.base import UpdateAttack
from fedactors.errors import ScenarioError
from fedactors.own_code.user_errors import class_called, in_a_line, told
from fedactors.streams import Purpose
from fedactors.transforms.draws import SenderDraws

_VALUES = 50


def try_attack(attack: UpdateAttack) -> None:
    """Raise ScenarioError, with the user's line, if what two attackers send are no updates, or depends on both."""
    rows = torch.randn(2, _VALUES, generator=torch.Generator().manual_seed(0))
    both, alone = _sent(attack, rows), _sent(attack, rows[:1])
    who = f"{class_called(type(attack))}.updates"
    for given, sent in ((rows, both), (rows[:1], alone)):
        if not isinstance(sent, torch.Tensor) or sent.shape != given.shape or sent.dtype != given.dtype:
            shape = f" of shape {tuple(sent.shape)}, {sent.dtype}" if isinstance(sent, torch.Tensor) else ""
            raise ScenarioError(
                f"{who}: returned a {type(sent).__name__}{shape} (accepted: a tensor of shape {tuple(given.shape)},"
                f" {given.dtype}: a row for each attacker)"
            )
    if not bool(both.isfinite().all()):
        raise ScenarioError(f"{who}: returned NaN or Inf (accepted: finite numbers)")
    if not torch.equal(both[:1], alone):
        raise ScenarioError(
            f"{who}: a row depends on who else attacks (accepted: rows that depend on their own update and draws alone)"
        )


def _sent(attack: UpdateAttack, rows: torch.Tensor) -> Any:
    senders = list(range(len(rows)))
    try:
        return attack.updates(rows.clone(), SenderDraws(0, Purpose.ATTACK, senders, [0] * len(senders)))
    except (Exception, SystemExit) as error:
        said = in_a_line(told(error)) or f"{type(error).__name__}: {error}"
        raise ScenarioError(f"{class_called(type(attack))}: tried on two updates: {said}") from error
