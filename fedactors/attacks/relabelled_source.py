"""Samples that are made by client, with the labels that attackers learn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedactors.attacks.base import Attackers, LabelAttack, wrong_labels
from fedactors.data.base import Data, Int64
from fedactors.data.on_demand import ClientSource


@dataclass(frozen=True)
class RelabelledSource:
    """The samples of a `source`, those of `attackers` with labels of `classes` that they learn from."""

    source: ClientSource
    attackers: tuple[Attackers, ...]
    classes: int

    @property
    def sizes(self) -> Int64:
        """Training samples of each client, `(clients,)`."""
        return self.source.sizes

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.source.input_shape

    def samples(self, client: int) -> tuple[NDArray[np.floating], Int64]:
        """Return the inputs `(n, *input_shape)` and labels `(n,)` of one client."""
        x, y = self.source.samples(client)
        for group in self.attackers:
            if group.first <= client < group.last and isinstance(group.attack, LabelAttack):
                return x, wrong_labels(group.attack, y, self.classes)
        return x, y

    def tests(self) -> Data:
        """Return the test set, whose labels are right."""
        return self.source.tests()
