"""1-way Gradient Transfer (1-W): Augenstein et al., Mixed Federated Learning, 2022, Algorithm 1 (right).

    central:  gc <- g_c(x; B_c)            one batch a round, at the model the round starts from, before the broadcast
    send x, gc
    clients:  y <- x ; K_i times: y <- y - eta ( g_i(y; B_i) + gc ) ; D_i <- y - x
    server:   x <- SERVEROPT(x, -sum pw_i D_i / sum pw_i, eta_s)

gc is the gradient of a step of training, as g_i is: with dropout, and BatchNorm by the statistics of the batch.

No central steps and nothing to merge: SERVEROPT may be FedAdam. 2 models down, 1 up, and the broadcast waits for the
gradient. A round without updates changes nothing: no client has applied gc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fedactors.algorithms.mixed import Mixed
from fedactors.learning.algorithm import Round, TaskSetting
from fedactors.plan import Payload

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class OneWay(Mixed):
    """Clients follow their own gradients and one central gradient that came with the model."""

    centre: ClassVar[Literal["before"]] = "before"
    central_results: ClassVar[tuple[str, ...]] = ("gc",)

    name: Literal["mixed-1w"] = "mixed-1w"

    def central_steps_of(self, setting: TaskSetting) -> int:
        """Return 1: the only central batch of a round."""
        return 1

    def batch_of(self, setting: TaskSetting) -> int:
        """Return |B_c|, by default K S |B_i|."""
        return self.central_batch or max(1, round(setting.steps * setting.cohort * setting.batch))

    def payload(self, setting: TaskSetting) -> Payload:
        """Return x and gc down, one model up; gc is computed first."""
        return Payload(down=2.0, before=self.central_samples(setting))

    def contribute(self, state: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """gc."""
        x, work = state["x"], self.central_work(round.setting)
        if not work.wanted:
            return {"gc": x.new_zeros(x.shape)}
        return {"gc": self.central_weight * central.sample(x, work, round.version)}

    def correction(self, sent: Vectors, kept: Vectors) -> Tensor:
        """gc joins every local gradient."""
        return sent["gc"]

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- SERVEROPT(x, -Dbar)."""
        x, kept = self._served(state, sums)
        return {"x": x, **kept}
