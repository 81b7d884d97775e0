"""Secure aggregation: Bonawitz et al., Practical Secure Aggregation for Privacy-Preserving Machine Learning, 2017.

The server learns the sum of a group's updates and none of them. What it costs a client, of n in the group and with m
values of ceil(log2 R) bits, keys of a_K and shares of secrets of a_S bytes, in the protocol's rounds:

    advertise keys      2 a_K up                        2 (n - 1) a_K down
    share keys          2 (n - 1) a_S up                2 (n - 1) a_S down
    masked input        m ceil(log2 R) bits up          n bits down: who is still there
    unmasking           n a_S up: for each of the others a share, of its key if it dropped out, else of its mask

with R = n (2^bits - 1) + 1, so that sums do not overflow. Together 2 n a_K + (5 n - 4) a_S bytes, n bits and the
values. Without t survivors nothing can be unmasked, and the updates of the group are lost.

Deviations: messages travel with a trip's download and upload. A trip has three more each way than without the protocol,
and each takes the link's latency; a device does not wait for the slowest of its group between the protocol's rounds,
and one that drops out anywhere is a drop-out. Bytes are those of a group of `group` members, though groups may
be smaller. What server and clients compute for masks costs no time. Updates themselves are trained and summed as ever:
neither masks nor rounding to `bits` change a bit of the model.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from pydantic import Field

from fedactors.options import Options
from fedactors.scenario.units import Size

MESSAGES = 4  # of a trip, each way: the model and three of the protocol


class SecureTraffic(NamedTuple):
    """What the protocol adds to a trip, in bytes, and how many bits a value takes on its way up."""

    down: int
    up: int
    bits: int


class SecureAggregation(Options):
    """Groups that are summed together, and how many of each have to survive."""

    group: int = Field(ge=2, le=1_000_000)
    """Most clients whose updates are summed in one run of the protocol (n); larger cohorts are cut into several groups,
    as equal as can be."""
    threshold: float = Field(default=0.7, gt=0.0, le=1.0)
    """What share of a group has to be heard (t / n): with fewer, its updates are `lost`."""
    bits: int = Field(default=16, ge=1, le=64)
    """Bits of a value before masks, as it travels in place of 32."""
    key: Size = 32
    """Size of a public key (a_K)."""
    share: Size = 32
    """Size of a share of a secret (a_S)."""

    def survivors(self, members: int) -> int:
        """Return how many of a group of `members` have to be heard (t)."""
        return ceil(Fraction(str(self.threshold)) * members)

    def traffic(self, members: int) -> SecureTraffic:
        """Return what a client of a group of `members` sends and receives, beside its model."""
        others = members - 1
        field = (members * (2**self.bits - 1)).bit_length()  # ceil(log2 R) with R - 1 = n (2^bits - 1)
        down = 2 * others * (self.key + self.share) + -(-members // 8)
        return SecureTraffic(down, 2 * self.key + (2 * others + members) * self.share, field)

    def problem(self, server: Any) -> str:
        """Say what of a server's options does not go with it, and why."""
        if server.timing.asynchronous:
            return f'"{server.timing.name}" has no rounds in which a group could be formed (accepted: synchronous)'
        if server.aggregation.single:
            name = server.aggregation.name
            return f'aggregation "{name}" looks at single updates, which nobody sees (accepted: mean)'
        if server.bad_updates == "quarantine":
            return "bad_updates: quarantine sets single updates aside, which nobody sees (accepted: fail, stop)"
        return ""
