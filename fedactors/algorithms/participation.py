"""What weight each update has: a policy of its own, which composes with any algorithm.

Weights depend on steps, sizes and membership only, never on learned values: they are known before training, so that
a worker can sum its weighted updates in place and return one vector.

Samples, uniform and examples weights are normalised over the updates heard. Schemes A, B and C are those of Ruan et
al., Towards Flexible Device Participation in Federated Learning, 2021, section 3. With N members (of the objective,
or those selected in the round), p^k = n_k / sum of their n, E steps wanted and s_k done:

    A   N p^k / K   if s_k = E, else 0; K devices are complete; K = 0 discards the round
    B   p^k         whatever s_k > 0; missing devices count as 0 and nothing is renormalised
    C   (E / s_k) p^k   if s_k > 0, else 0
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

    def weights(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        raise TypeError(f"{type(self).__name__} does not say how it weighs")


class SampleWeights(Weighting):
    """n_k over the sum of those heard: McMahan's weights."""

    name: Literal["samples"] = "samples"

    def weights(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        return _normalised([update.samples for update in updates])


class UniformWeights(Weighting):
    """One over the number heard."""

    name: Literal["uniform"] = "uniform"

    def weights(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        return _normalised([1] * len(updates))


class ExampleWeights(Weighting):
    """Samples really processed over their sum: the weights of mixed federated learning."""

    name: Literal["examples"] = "examples"

    def weights(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return one weight per update, in order."""
        return _normalised([update.examples for update in updates])


class SchemeA(Weighting):
    """Only complete devices count, scaled up for the missing ones."""

    of_those_asked: ClassVar[bool] = True

    name: Literal["A"] = "A"

    def weights(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return N p^k / K for complete updates, 0 for the others."""
        complete = sum(update.steps == update.wanted for update in updates)
        return [
            update.samples / members.samples * (members.clients / complete) if update.steps == update.wanted else 0.0
            for update in updates
        ]


class SchemeB(Weighting):
    """Whatever was done counts with the device's own share."""

    of_those_asked: ClassVar[bool] = True

    name: Literal["B"] = "B"

    def weights(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return p^k."""
        return [update.samples / members.samples for update in updates]


class SchemeC(Weighting):
    """Incomplete work is scaled up to a whole round's."""

    of_those_asked: ClassVar[bool] = True

    name: Literal["C"] = "C"

    def weights(self, updates: Sequence[Update], members: Members) -> list[float]:
        """Return (E / s_k) p^k."""
        return [update.wanted / update.steps * (update.samples / members.samples) for update in updates]


def _normalised(shares: Sequence[int]) -> list[float]:
    total = sum(shares)
    return [share / total for share in shares]
