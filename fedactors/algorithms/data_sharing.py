"""DS, data sharing: Zhao et al., Federated Learning with Non-IID Data, 2018, with all of the server's data; and DSL.

    before training the server sends D_0 to every client:  D'_i <- D_i + D_0   (a multiset: no de-duplication)
    then FedAvg on D'_i, with p'_i = (n_i + n_0) / (n + N n_0)

DSL (server learning paper, conference version): DS, and after the aggregation the server learns from D_0 as in FSL.

A pass has ceil((n_i + n_0) / B) local steps, more than FedAvg's. The n_0 samples are charged once per client: with
`lazy` on top of its first download (until one is complete), with `upfront` for every client before the first round,
in bytes but at no virtual time. eta_g is 1 unless given: the journal does not say what it used. A client that did s <
K steps sends what they gave. n_0 = 0 is FedAvg; DSL whose server has no rate or no steps is DS.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedactors.algorithms.fedavg import Averaging
from fedactors.algorithms.server_learning import Incremental
from fedactors.learning.algorithm import TaskSetting
from fedactors.plan import Payload

Share = Literal["lazy", "upfront"]


class DataSharing(Averaging):
    """Federated averaging on data to which every client adds the server's."""

    shares: ClassVar[bool] = True

    name: Literal["ds"] = "ds"
    share: Share = "lazy"
    """When the server's samples are sent: with a client's first download, or to all before the first round."""

    def payload(self, setting: TaskSetting) -> Payload:
        """Return FedAvg's traffic, and the samples once per client."""
        return shipped(Payload(), self.share, setting)


class DSL(Incremental):
    """Data sharing, after which the server learns from its own data."""

    weighting: ClassVar[str] = "samples"
    shares: ClassVar[bool] = True

    name: Literal["dsl"] = "dsl"
    version: Literal["journal", "conference"] = "conference"
    """As for fsl; the algorithm comes from the conference paper."""
    share: Share = "lazy"
    """When the server's samples are sent: with a client's first download, or to all before the first round."""

    def payload(self, setting: TaskSetting) -> Payload:
        """Return FedAvg's traffic, the samples once per client, and the server's steps after the aggregation."""
        return shipped(super().payload(setting), self.share, setting)


def shipped(payload: Payload, share: Share, setting: TaskSetting) -> Payload:
    """Return `payload` with the n_0 samples of the server added to what a client is sent once."""
    samples = setting.central * setting.sample_size
    return payload._replace(once=samples) if share == "lazy" else payload._replace(ahead=samples)
