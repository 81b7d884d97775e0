"""What an attack is: options, and a function of the attackers' updates, or of their labels.

    class Halved(Attack):
        name: Literal["halved"] = "halved"

        def updates(self, rows, draws):
            return rows / 2

Rows are `(attackers, parameters)`, one attacker each. What a row becomes depends on that row alone and on the random
numbers of its sender, so that results do not depend on who is trained together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.options import Options

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.draws import SenderDraws


class Attack(Options):
    """Base of all attacks; by itself it changes nothing."""

    relabels: ClassVar[bool] = False
    """Whether attackers learn from other labels than theirs; else they alter their updates."""

    name: str

    def updates(self, rows: Tensor, draws: SenderDraws) -> Tensor:
        """Return what attackers send in place of their updates `rows`, `(attackers, parameters)`."""
        return rows

    def labels(self, labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
        """Return the labels, `(n,)`, that attackers learn from in place of theirs. Raises ScenarioError if unknown."""
        return labels


class Attackers(NamedTuple):
    """Consecutive clients, first <= client < last, that attack alike."""

    first: int
    last: int
    attack: Attack
