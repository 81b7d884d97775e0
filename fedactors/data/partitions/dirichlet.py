"""Dirichlet laws: of clients' proportions of labels, of labels' proportions of clients, or of shares of all samples."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt, model_validator
from typing_extensions import Self

from fedactors.data.base import Data, Info, Int64
from fedactors.data.partitions.assignment import Split, assign
from fedactors.data.partitions.label_dirichlet import LEAST, label_shares
from fedactors.data.partitions.partition import (
    AssignedPartition,
    check_announced,
    held_as_trained,
    one_pool,
    refuse_other_labels,
)
from fedactors.data.partitions.sizes import Concentration, dirichlet_sizes
from fedactors.errors import ScenarioError
from fedactors.streams import Purpose, stream

Float64 = NDArray[np.float64]

_WHERE = "task.partition"


class DirichletPartition(AssignedPartition):
    """Every client draws its proportions of labels from a symmetric Dirichlet law (Hsu et al. 2019).

    `alpha` is that of each label; Hsu et al.'s, Dir(alpha p) with p the shares of labels, is this one times the number
    of labels.
    The smaller `alpha`, the fewer labels a client has. Clients draw their samples in random order and without
    replacement; where a label has run out, its share falls to the client's other labels in proportion. So
    sizes are kept exactly, and the last clients get what is left.

    By `label`, each label's samples are split over the clients, whose sizes then differ too; see `label_dirichlet`.
    Of `quantities`, it is the clients' shares of all samples that are drawn; see `QuantityPartition`.
    """

    name: Literal["dirichlet"] = "dirichlet"
    alpha: Concentration
    """Concentration of each label, or of each client's quantity."""
    of: Literal["labels", "quantities"] = "labels"
    """What is unequal: the mixture of labels at a client, or how many samples it holds."""

    by: Literal["client", "label"] = "client"
    """Whose proportions are drawn: each client's, of labels, at equal sizes; or each label's, of clients."""
    least: PositiveInt | None = None
    """Samples that each client has at the least, by: label; 10 if not given."""

    @model_validator(mode="after")
    def _check_label_options(self) -> Self:
        if self.by == "client":
            if self.least is not None:
                raise ValueError("least goes with by: label (accepted: by: label, or no least)")
            return self
        others = {
            "of": self.of != "labels",
            "samples": self.samples is not None,
            "test_samples": self.test_samples is not None,
            "replace": self.replace,
            "reallocate": self.reallocate,
        }
        if found := [name for name, there in others.items() if there]:
            raise ValueError(f"by: label gives all samples away once; found {', '.join(found)} too (accepted: none)")
        return self

    @model_validator(mode="after")
    def _check_quantity_options(self) -> Self:
        if self.of == "quantities" and (self.samples is not None or self.reallocate):
            raise ValueError("of: quantities gives all samples away once (accepted: neither samples nor reallocate)")
        return self

    def sizes(self, info: Info, clients: int, seed: int) -> Int64:
        """Return the samples of each client, `(clients,)`. Raises ScenarioError if the data are too few."""
        if self.of == "quantities" and self.samples is None:
            return dirichlet_sizes(self.alpha, info.train_size, clients, seed)
        if self.of == "labels":
            refuse_other_labels(info, self.name)
        if self.by == "label":
            if info.class_counts is None:
                raise ScenarioError(
                    f'{_WHERE}.by: "{info.name}" does not say how many samples of each label it has (accepted: client)'
                )
            sizes: Int64 = self._by_label(np.array(info.class_counts, np.int64), clients, seed).sum(1)
            return sizes
        return super().sizes(info, clients, seed)

    def split(self, labels: Int64, classes: int, sizes: Int64, seed: int) -> Split:
        """Return which samples each client holds; see `Partition.split`."""
        if self.of == "quantities":
            return one_pool(labels, sizes, seed, replace=self.replace, purpose=self._purpose)
        if self.by == "label":
            counts = np.bincount(labels, minlength=classes)
            shares = self._by_label(counts, len(sizes), seed)
            check_announced(counts, shares, sizes)
            return self._assigned(labels, shares, seed)
        draws = stream(seed, Purpose.PARTITION)
        left = np.bincount(labels, minlength=classes)
        if sizes.sum() > len(labels) and not self.replace:
            raise ScenarioError(f"{_WHERE}: {sizes.sum():,} samples wanted, {len(labels):,} available")
        proportions = draws.dirichlet(np.full(classes, self.alpha), size=len(sizes))
        shares = np.zeros((len(sizes), classes), dtype=np.int64)
        for k in draws.permutation(len(sizes)):
            if self.replace:
                shares[k] = _multinomial(draws, sizes[k], proportions[k], left)
            else:
                shares[k] = _taken(draws, sizes[k], proportions[k], left)
                left -= shares[k]
        return self._assigned(labels, shares, seed)

    def holdout(self, data: Data, clients: int, seed: int) -> Split:
        """Return which test samples each client holds out: of each label the part that it has in training.

        Where that is not known, as data are assigned anew in every round, or where each client is to have so many
        `test_samples`, they are drawn by the same law; so they are of quantities, which are of all labels alike.
        """
        if self.of == "quantities" or self.reallocate or self.test_samples is not None:
            return super().holdout(data, clients, seed)
        return held_as_trained(self, data, clients, seed)

    def _by_label(self, counts: Int64, clients: int, seed: int) -> Int64:
        return label_shares(self.alpha, counts, clients, self.least or LEAST, seed)

    def _assigned(self, labels: Int64, shares: Int64, seed: int) -> Split:
        """Return the split of samples with `shares` of each label for each client, `(clients, labels)`."""
        hosted = np.tile(np.arange(shares.shape[1], dtype=np.int64), (len(shares), 1))
        return assign(labels, hosted, shares, seed, replace=self.replace, purpose=self._purpose)


def _taken(draws: np.random.Generator, samples: int, proportions: Float64, left: Int64) -> Int64:
    """Draw `samples` labels in `proportions`, none oftener than it is `left`; `left` holds enough."""
    taken = np.zeros_like(left)
    while missing := samples - taken.sum():
        drawn_now = _multinomial(draws, missing, proportions, left - taken)
        taken += np.minimum(drawn_now, left - taken)  # either nothing was cut, or a label is used up: this ends
    return taken


def _multinomial(draws: np.random.Generator, samples: int, proportions: Float64, left: Int64) -> Int64:
    """Draw `samples` labels in `proportions`, among those of which something is left."""
    usable = np.where(left > 0, proportions, 0.0)
    if usable.sum() < 1e-200:  # all its labels are used up: take any other
        usable = left.astype(np.float64)
    return draws.multinomial(samples, usable / usable.sum())
