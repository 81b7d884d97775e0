"""Example Transfer (ET): Augenstein et al., Mixed Federated Learning, 2022, section 2; in words only.

    send x, and K_i central batches of b samples to each client
    clients:  y <- x ; K_i times: y <- y - eta ( g_i(y; B_i) + g_c(y; B_c) ) ; D_i <- y - x
    server:   x <- SERVEROPT(x, -sum pw_i D_i / sum pw_i, eta_s)

Each client and step has a central batch of its own. Both gradients are those of a model in training; under dropout each
has its masks. What `ds` does is different: it pools the samples into one data set instead of adding two losses. With a
regulariser as central loss no sample travels and every client computes it in every step: the baseline of the paper's
recommender. 1 model and the samples down (as many as K steps take, whatever the client got done), 1 up; a step takes
the client as long as both losses need. A round without updates changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fedactors.algorithms.mixed import Mixed
from fedactors.learning.algorithm import Round, TaskSetting
from fedactors.models.layers import REGULARISERS
from fedactors.plan import Payload

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class ExampleTransfer(Mixed):
    """Clients compute both losses; the server sends them what the central one needs."""

    centre: ClassVar[Literal["at clients"]] = "at clients"
    travels_by_rows: ClassVar[bool] = False  # a client that computes a regulariser needs all

    name: Literal["mixed-et"] = "mixed-et"

    def undefined(self, mixing: bool) -> str:
        """Return nothing, as FedAvg: both losses are in the clients' own steps."""
        return ""

    def batch_of(self, setting: TaskSetting) -> int:
        """Return b, by default a client's batch."""
        return self.central_batch or setting.batch

    def effort(self, setting: TaskSetting) -> float:
        """Return how much longer a step takes than with the client's own batch alone."""
        if self.central_loss in REGULARISERS:
            return 1.0 + setting.evaluation / setting.batch
        return 1.0 + min(self.batch_of(setting), setting.central) / setting.batch

    def payload(self, setting: TaskSetting) -> Payload:
        """Return the model and K batches of samples down, one model up."""
        travelling = 0 if self.central_loss in REGULARISERS else self.central_samples(setting)
        return Payload(down=1.0 + travelling * setting.sample_size)

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- SERVEROPT(x, -Dbar)."""
        x, kept = self._served(state, sums)
        return {"x": x, **kept}
