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
    fixed            all members of the population: whoever is not asked counts as s_k = 0, as in the paper
    unbiased         all members, times N / S for S asked: of a cohort drawn among all members, each device's weight is
                     p^k on average under B, whatever the sizes (under A, N p^k / K has that factor already)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

from fedactors.options import Options


class Update(NamedTuple):
    """What a participation policy may know of one update that was heard."""

    samples: int  # n_k: size of the client's data
    examples: int  # samples processed in this trip
    steps: int  # s_k
    wanted: int  # E


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


class SampleWeights(Weighting):
    """n_k over the sum of those heard: McMahan's weights."""

    name: Literal["samples"] = "samples"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        return _normalised([update.samples for update in updates])


class UniformWeights(Weighting):
    """One over the number heard."""

    name: Literal["uniform"] = "uniform"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        return _normalised([1] * len(updates))


class ExampleWeights(Weighting):
    """Samples really processed over their sum: the weights of mixed federated learning."""

    name: Literal["examples"] = "examples"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        return _normalised([update.examples for update in updates])


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
        complete = sum(update.steps == update.wanted for update in updates)
        return [
            update.samples / members.samples * (members.clients / complete) if update.steps == update.wanted else 0.0
            for update in updates
        ]


class SchemeB(Scheme):
    """Whatever was done counts with the device's own share."""

    name: Literal["B"] = "B"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return p^k."""
        return [update.samples / members.samples for update in updates]


class SchemeC(Scheme):
    """Incomplete work is scaled up to a whole round's."""

    name: Literal["C"] = "C"

    def weigh(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return (E / s_k) p^k."""
        return [update.wanted / update.steps * (update.samples / members.samples) for update in updates]


def _normalised(shares: Sequence[int]) -> list[float]:
    total = sum(shares)
    return [share / total for share in shares]
