"""What an attack is: options, and a function of the attackers' updates, or of their labels.

    class Halved(UpdateAttack):
        name: Literal["halved"] = "halved"

        def updates(self, rows, draws):
            return rows / 2

Rows are `(attackers, parameters)`, one attacker each. What a row becomes depends on that row alone and on the random
numbers of its sender, so that results do not depend on who is trained together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import ScenarioError
from fedactors.options import Options

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.draws import SenderDraws


class Attack(Options):
    """Base of `UpdateAttack` and `LabelAttack`."""

    name: str


class UpdateAttack(Attack):
    """An attack by what is sent."""

    def updates(self, rows: Tensor, draws: SenderDraws) -> Tensor:
        """Return what attackers send in place of their updates `rows`, `(attackers, parameters)`, as a new tensor."""
        raise TypeError(f"{type(self).__name__} does not say what attackers send")


class LabelAttack(Attack):
    """An attack by what is learnt."""

    def labels(self, labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
        """Return the labels, `(n,)`, that attackers learn from in place of theirs. Raises ScenarioError if unknown."""
        raise TypeError(f"{type(self).__name__} does not say which labels attackers learn from")


class Attackers(NamedTuple):
    """Consecutive clients, first <= client < last, that attack alike: a population group."""

    first: int
    last: int
    group: str
    attack: Attack


def wrong_labels(attack: LabelAttack, labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return the labels, `(n,)`, that attackers learn from. Raises ScenarioError if they are no labels."""
    found = np.asarray(attack.labels(labels, classes))
    whole = found.dtype.kind in "iu" and found.shape == labels.shape
    if not whole or (len(found) and not 0 <= int(found.min()) <= int(found.max()) < classes):
        shown = f"{found.dtype} of shape {found.shape}" + f", {found.min()} to {found.max()}" * bool(found.size)
        raise ScenarioError(
            f"{attack.name}: labels returned {shown} (accepted: {len(labels):,} whole numbers from 0 to {classes - 1})"
        )
    return found.astype(np.int64)
