"""What weight each update has: a policy of its own, which composes with any algorithm.

Weights depend on steps, sizes and membership only, never on learned values: they are known before training, so that
a worker can sum its weighted updates in place and return one vector.

Samples, uniform and examples weights are normalised over the updates heard. Schemes A, B and C are those of Ruan et
al., Towards Flexible Device Participation in Federated Learning, 2021, section 3. With N members (of the objective,
or those selected in the round), p^k = n_k / sum of their n, E steps wanted and s_k done:

    A   N p^k / K   if s_k = E, else 0; K devices are complete; K = 0 discards the round
    B   p^k         whatever s_k > 0; missing devices count as 0 and nothing is renormalised
    C   (E / s_k) p^k   if s_k > 0, else 0

The paper asks all N devices in every round. Where a cohort is drawn, or devices that are off are not asked, `weights`
says which set p^k is a share of:

    share_of_asked   those asked, who stand for all: weights add up as if there were no others
    fixed            all members of the population: a member that is not asked counts as s_k = 0, as in the paper;
                     devices without work, which are never asked, are no members
    unbiased         all members, times N / S for S asked: of a cohort drawn among all members, each device's weight is
                     p^k on average under B, whatever the sizes (under A, N p^k / K has that factor already)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from fedactors.options import Options
from fedactors.workload import CohortWork

Int64 = NDArray[np.int64]


class Update(NamedTuple):
    """What a participation policy may know of one update that was heard."""

    samples: int  # n_k: size of the client's data
    examples: int  # samples processed in this trip
    steps: int  # s_k
    wanted: int  # E


@dataclass(frozen=True, slots=True)
class Updates(Sequence[Update]):
    """The updates that were heard in a round, in columns `(updates,)`; a sequence of `Update` to readers."""

    samples: Int64
    examples: Int64
    steps: Int64
    wanted: Int64

    @classmethod
    def of(cls, updates: Sequence[Update]) -> Updates:
        """Return the columns of single updates; of columns, themselves."""
        if isinstance(updates, Updates):
            return updates
        return cls(*np.array(updates, np.int64).reshape(len(updates), len(Update._fields)).T)

    def __len__(self) -> int:
        return len(self.samples)

    @overload
    def __getitem__(self, place: int) -> Update: ...
    @overload
    def __getitem__(self, place: slice) -> Updates: ...
    def __getitem__(self, place: int | slice) -> Update | Updates:
        columns = (self.samples, self.examples, self.steps, self.wanted)
        if isinstance(place, slice):
            return Updates(*(column[place] for column in columns))
        return Update._make(int(column[place]) for column in columns)

    def __iter__(self) -> Iterator[Update]:
        columns = (self.samples, self.examples, self.steps, self.wanted)
        return map(Update._make, zip(*(column.tolist() for column in columns), strict=True))


class Members(NamedTuple):
    """The set over which p^k is a share: the objective's members, or else all clients selected."""

    clients: float  # N; with n not whole where a lot of clients stands for members that are absent, too
    samples: float  # n: sum of n_k


class Weighting(Options):
    """Base of all participation policies."""

    of_those_asked: ClassVar[bool] = False
    """Whether weights are shares among all selected in a round, whether or not their updates arrived."""

    name: str

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        raise TypeError(f"{type(self).__name__} does not say how it weighs")

    def counts(self, work: CohortWork) -> Int64:
        """Return what clients count for their edge at the cloud, `(clients,)`, in any unit: here their samples."""
        held: Int64 = work.held
        return held


class SampleWeights(Weighting):
    """n_k over the sum of those heard: McMahan's weights."""

    name: Literal["samples"] = "samples"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        return _normalised(Updates.of(updates).samples)


class UniformWeights(Weighting):
    """One over the number heard."""

    name: Literal["uniform"] = "uniform"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        return _normalised(np.ones(len(updates), np.int64))

    def counts(self, work: CohortWork) -> Int64:
        """Return what clients count for their edge at the cloud, `(clients,)`: all alike."""
        return np.ones_like(work.held)


class ExampleWeights(Weighting):
    """Samples really processed over their sum: the weights of mixed federated learning."""

    name: Literal["examples"] = "examples"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        return _normalised(Updates.of(updates).examples)

    def counts(self, work: CohortWork) -> Int64:
        """Return what clients count for their edge at the cloud, `(clients,)`: the samples that a whole trip is of."""
        return work.samples(work.wanted)


class Scheme(Weighting):
    """Base of the schemes of Ruan et al."""

    of_those_asked: ClassVar[bool] = True
    for_missing: ClassVar[bool] = False
    """Whether the scheme itself makes up for devices that are not heard."""

    weights: Literal["share_of_asked", "fixed", "unbiased"] = "share_of_asked"
    """What p^k is a share of: those asked; all members; or all members, scaled up by how many were asked of them."""

    def counted(self, weights: Sequence[float], members: Members, asked: int) -> list[float]:
        """Return weights over all `members`, of whom `asked` were asked, scaled up if they are to be unbiased."""
        if self.weights != "unbiased" or self.for_missing:
            return list(weights)
        return [members.clients / asked * weight for weight in weights]


class SchemeA(Scheme):
    """Only complete devices count, scaled up for the missing ones."""

    for_missing: ClassVar[bool] = True

    name: Literal["A"] = "A"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return N p^k / K for complete updates, 0 for the others."""
        columns = Updates.of(updates)
        complete = columns.steps == columns.wanted
        scale = members.clients / max(1, int(np.count_nonzero(complete)))
        weights: list[float] = np.where(complete, columns.samples / members.samples * scale, 0.0).tolist()
        return weights


class SchemeB(Scheme):
    """Whatever was done counts with the device's own share."""

    name: Literal["B"] = "B"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return p^k."""
        weights: list[float] = (Updates.of(updates).samples / members.samples).tolist()
        return weights


class SchemeC(Scheme):
    """Incomplete work is scaled up to a whole round's."""

    name: Literal["C"] = "C"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return (E / s_k) p^k."""
        columns = Updates.of(updates)
        weights: list[float] = (columns.wanted / columns.steps * (columns.samples / members.samples)).tolist()
        return weights


def _normalised(shares: Int64) -> list[float]:
    weights: list[float] = (shares / max(1, int(shares.sum()))).tolist()
    return weights
