"""What the mixed federated learning algorithms share: Augenstein et al., Mixed Federated Learning, 2022.

    f(x) = f_f(x) + f_c(x),   f_f = w_f (1/N) sum_i loss over D_i,   f_c = w_c times a central loss,   w_f + w_c = 1

The central loss may be the clients' own on central data D_0, or another one; a regulariser looks at the model alone and
needs no data. A client's gradient is multiplied by w_f, a central one by w_c. SERVEROPT follows the clients' mean
update, MERGEOPT joins it with the central learner's; both, and CENTRALOPT, are SGD with steps eta_s = eta_m = 1 and
eta_c = eta eta_s unless the scenario says otherwise. Updates weigh as many examples as they processed.

Batches, where the scenario gives none: |B_c| = S |B_i| for Parallel Training and 2-way, K S |B_i| for 1-way, so that
client and central variance weigh alike (appendix C.2). K_c is K, the steps wanted of a client.

Partial work: a client that did K_i < K steps sends what they gave; K_c does not depend on it. A round without updates
leaves SERVEROPT alone; what becomes of the central part, each file says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, model_validator

from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import Algorithm, TaskSetting
from fedactors.models.layers import REGULARISERS, Loss
from fedactors.optim.server_optimizers import ServerOptimizer, Sgd, joined, split
from fedactors.workload import Workload, workload

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import Round, Vectors


class Mixed(Algorithm):
    """A federated loss and a central one, made small together."""

    weighting: ClassVar[str] = "examples"
    travels_by_rows: ClassVar[bool] = True

    name: str
    central_weight: float = Field(default=0.5, ge=0.0, le=1.0)
    """Weight of the central loss (w_c); the clients' has the rest (w_f)."""
    central_objective: Loss | None = None
    """The central loss; by default the model's own, on central data. `spreadout` needs no data."""
    central_batch: int | None = Field(default=None, ge=1)
    """Samples of a central batch (|B_c|); by default as many as weigh like the clients'."""
    global_lr: float = Field(default=1.0, ge=0.0)
    """Step of the server along the clients' mean update (eta_s)."""
    server_optimizer: ServerOptimizer | None = None
    """How the server follows the clients' mean update (SERVEROPT), in place of `global_lr`."""

    @model_validator(mode="after")
    def _check_server_rates(self) -> Mixed:
        for rate, optimizer in (("global_lr", "server_optimizer"), ("merge_lr", "merge_optimizer")):
            if getattr(self, optimizer, None) is not None and getattr(self, rate) != 1.0:
                raise ValueError(f"give {rate} or {optimizer}, whose rate is {optimizer}.lr")
        return self

    @property
    def learns(self) -> bool:
        """A loss that looks at samples needs central data."""
        return self.central_loss not in REGULARISERS

    def undefined(self, mixing: bool) -> str:
        """Say that a central part joins the mean of several updates, which may come late."""
        return "the central part joins the mean of several updates, and mixing takes one client at a time" * mixing

    @property
    def loss_weight(self) -> float:
        """w_f."""
        return 1.0 - self.central_weight

    @property
    def central_share(self) -> float:
        """w_c."""
        return self.central_weight

    @property
    def central_loss(self) -> Loss | None:
        """The central loss, if it is another one."""
        return self.central_objective

    def central_steps_of(self, setting: TaskSetting) -> int:
        """Return K_c."""
        return round(setting.steps)

    def batch_of(self, setting: TaskSetting) -> int:
        """Return |B_c|."""
        return self.central_batch or max(1, setting.cohort * setting.batch)

    def central_work(self, setting: TaskSetting) -> Workload:
        """Return K_c steps of |B_c| samples, none without data; a regulariser counts as one sample."""
        samples = 1 if self.central_loss in REGULARISERS else setting.central
        steps = self.central_steps_of(setting)
        replaced = setting.with_replacement
        return workload(samples, self.batch_of(setting), epochs=None, steps=steps, with_replacement=replaced)

    def central_samples(self, setting: TaskSetting) -> int:
        """Return the samples that the central learner processes in a round."""
        work = self.central_work(setting)
        return work.samples(work.wanted)

    def check(self, setting: TaskSetting) -> None:
        """Look whether there is what the central loss needs. Raises ScenarioError if not."""
        if self.learns and not setting.central:
            raise ScenarioError(f'algorithm "{self.name}": the central loss has no samples (accepted: server.data)')

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """x, and the state of SERVEROPT."""
        return {"x": x, **joined(self._serveropt.start(x), "server")}

    @property
    def _serveropt(self) -> ServerOptimizer:
        return self.server_optimizer or Sgd(lr=self.global_lr)

    def _served(self, state: Vectors, sums: Vectors) -> tuple[Tensor, dict[str, Tensor]]:
        """Return SERVEROPT(x, -Dbar) and what it keeps, under its names in the state."""
        x, slots = self._serveropt.step(state["x"], -sums["delta"], split(state, "server"))
        return x, joined(slots, "server")


class CentralTraining(Mixed):
    """The central learner takes local steps of its own beside the clients, and both updates are merged."""

    merge_lr: float = Field(default=1.0, ge=0.0)
    """Step of the server along the sum of both updates (eta_m)."""
    merge_optimizer: ServerOptimizer | None = None
    """How the server follows that sum (MERGEOPT), in place of `merge_lr`."""
    central_lr: float | None = Field(default=None, ge=0.0)
    """Rate of the central steps (eta_c); by default the clients' times `global_lr`, or `server_optimizer.lr` where that
    is a step along the mean update (sgd, momentum); adaptive rates are on another scale, and count as 1."""
    central_steps: int | None = Field(default=None, ge=0)
    """Central steps in a round (K_c); by default as many as are wanted of a client."""

    def central_steps_of(self, setting: TaskSetting) -> int:
        """Return K_c."""
        return round(setting.steps) if self.central_steps is None else self.central_steps

    def central_rate(self, round: Round) -> float:
        """Return eta_c."""
        if self.central_lr is not None:
            return self.central_lr
        return round.lr * (1.0 if self._serveropt.adaptive else self._serveropt.lr)

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """x, and what SERVEROPT and MERGEOPT keep."""
        return {**super().start(x), **joined(self._mergeopt.start(x), "merge")}

    @property
    def _mergeopt(self) -> ServerOptimizer:
        return self.merge_optimizer or Sgd(lr=self.merge_lr)

    def _merged(self, state: Vectors, both: Tensor) -> dict[str, Tensor]:
        """Return MERGEOPT(x, -(Dc + Df)) and what it keeps, under its names in the state."""
        x, slots = self._mergeopt.step(state["x"], -both, split(state, "merge"))
        return {"x": x, **joined(slots, "merge")}
