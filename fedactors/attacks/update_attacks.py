"""Attackers that train honestly and do not send their update v.

    sign-flip   -scale v            Li et al., RSA: Byzantine-Robust Stochastic Aggregation Methods, 2019
    boost       factor v            Bagdasaryan et al., How To Backdoor Federated Learning, 2020: model replacement
    random      deviation N(0, I)   Blanchard et al., Machine Learning with Adversaries, 2017: deviation 200

`random` with `deviation: 0` sends zeros: a free rider (Lin et al., Free-riders in Federated Learning, 2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fedactors.attacks.base import UpdateAttack

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.draws import SenderDraws


class SignFlip(UpdateAttack):
    """Sends the update with its sign turned."""

    name: Literal["sign-flip"] = "sign-flip"
    scale: float = Field(default=1.0, gt=0.0, le=1e6)
    """How many times as long it is."""

    def updates(self, rows: Tensor, draws: SenderDraws) -> Tensor:
        """Return -scale v."""
        return -self.scale * rows


class Boost(UpdateAttack):
    """Sends a multiple of the update, so that it outweighs the others."""

    name: Literal["boost"] = "boost"
    factor: float = Field(default=10.0, gt=0.0, le=1e6)
    """How many times as long it is."""

    def updates(self, rows: Tensor, draws: SenderDraws) -> Tensor:
        """Return factor v."""
        return self.factor * rows


class RandomUpdates(UpdateAttack):
    """Sends noise in place of the update."""

    name: Literal["random"] = "random"
    deviation: float = Field(default=1.0, ge=0.0, le=1e6)
    """Standard deviation of each value; 0 sends zeros."""

    def updates(self, rows: Tensor, draws: SenderDraws) -> Tensor:
        """Return deviation N(0, I), new in every trip."""
        return self.deviation * draws.normal(rows.shape[1]).to(rows.device)
