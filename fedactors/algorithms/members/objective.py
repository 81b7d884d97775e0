"""The objective sum over k in C of p^k F_k, and how arrivals and departures move it.

Source: Ruan et al., Towards Flexible Device Participation in Federated Learning, 2021, sections 3.3, 4.2 and 4.3. C is
the objective set, p^k = n_k / sum over C of n. When the objective shifts after round tau_0, the learning rate starts
anew, eta_tau = eta(tau - tau_0), so that the first round after the shift has the first round's rate.

    arrival of l     C <- C + {l} ; shift
                     fast reboot: the weight of l is multiplied by b_j = 1 + 2 / (j + 1)^2 in its round j = 0, 1, ...,
                     that is 3, 3/2, 11/9, ... ; the others' weights are not reduced. Vanilla reboot: b = 1
    departure of l   include: nothing changes, l counts as inactive in every later round
                     exclude: C <- C - {l} ; shift
                     auto: by Corollary 4.0.3 (see `departure`) ; lookahead: by trying both

The paper has one rate, that of the devices. A schedule of the server's rate (`server_schedule`) runs on through shifts.

It composes with any algorithm, participation policy and schedule. A device that arrives during a round first counts in
the next one. tau_0 of a departure is the last round whose aggregate has an update of l.

[choice] Both kinds of reboot start the rate anew (the paper's Corollary 3.2.1 needs it in both). The paper says
"initially 3 p^l, decaying by O(tau^-2)"; `boost` and `decay` give the sequence above. The clock j runs on in rounds in
which l is not heard. A rate that clients have been sent is not taken back: if l leaves during a round and its work is
lost, the weights of that round are already without l, and the new rate begins with the round after it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedactors.options import Options

Departures = Literal["include", "exclude", "auto", "lookahead"]


class Vanilla(Options):
    """Members arrive and depart; no weight is raised."""

    name: Literal["vanilla"] = "vanilla"
    departures: Departures = "exclude"
    """What a device that leaves is to the objective; `auto` and `lookahead` decide case by case."""
    trial_rounds: int = Field(default=20, ge=0, le=100_000)
    """How many rounds' work a device does by itself before it leaves, so that `auto` can estimate its best loss."""
    reset_rate: bool = True
    """Start the schedule of the clients' learning rate anew when the objective shifts; the server's runs on."""

    def factor(self, age: int) -> float:
        """Return what the weight of a device is multiplied by, `age` rounds after its first one."""
        return 1.0


class FastReboot(Vanilla):
    """Members come and go; those that arrive weigh more at first."""

    name: Literal["fast-reboot"] = "fast-reboot"  # type: ignore[assignment]
    boost: float = Field(default=3.0, ge=0.0, le=1e6)
    """Factor of an arriving device's weight in its first round."""
    decay: float = Field(default=2.0, ge=0.0, le=100.0)
    """Power of the rounds with which the factor falls to 1."""

    def factor(self, age: int) -> float:
        """Return b_j = 1 + (boost - 1) / (j + 1)^decay, j the `age`."""
        factor: float = 1.0 + (self.boost - 1.0) / (age + 1) ** self.decay
        return factor
