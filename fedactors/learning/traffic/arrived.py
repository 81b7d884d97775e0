"""What the server has received of each client, kept where a departure takes it out of a mean over the population.

Some algorithms keep a mean over all clients on the server: c of SCAFFOLD, R of FedDyn. It is the mean of what arrived.
Behind transforms of the uplink, and with attackers, that is not what the clients themselves keep, so each client keeps
the sum of it too:

    a_i <- a_i + what arrived of the upload of i, once the server has it        for each upload that is summed plainly

Then c = (1/N) sum_i a_i whatever transforms and attackers do, and it stays so when a_l is taken out with client l.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fedactors.learning.algorithm import Algorithm

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.attacks.base import Attackers
    from fedactors.transforms.chain import Chain


def follows_departures(algorithm: Algorithm) -> bool:
    """Whether an algorithm says what departures do to the server's state, from what the departed had kept."""
    return bool(algorithm.keeps) and type(algorithm).members_changed is not Algorithm.members_changed


def arrived_names(algorithm: Algorithm) -> dict[str, str]:
    """Return the uploads whose sums may be kept, each with the name under which a client keeps its sum.

    They are those without weights of an algorithm that follows departures.
    """
    return {upload: _name(upload) for upload in algorithm.unweighted} if follows_departures(algorithm) else {}


def kept_lengths(
    chain: Chain | None, attackers: Sequence[Attackers], algorithm: Algorithm, parameters: int
) -> dict[str, int]:
    """Return the lengths of what clients keep because of the transforms of a chain, or of attackers, by name.

    Nothing where there are neither: what arrives is then what clients have worked out.
    """
    if chain is None and not attackers:
        return {}
    lengths = {} if chain is None else chain.keeps(algorithm.changes)
    return lengths | dict.fromkeys(arrived_names(algorithm).values(), parameters)


def received_of(kept: Mapping[str, Tensor], upload: str, own: str) -> Tensor:
    """Return what the server has received of a client's `upload`, the sum over its trips: `(parameters,)`.

    Without transforms and attackers that is what the client keeps as its `own`.
    """
    return kept.get(_name(upload), kept[own])


def _name(upload: str) -> str:
    return f"uplink.{upload}.arrived"
