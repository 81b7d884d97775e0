"""What the algorithms of federated and server learning share: the options of the server's own local steps.

Sources: Mai, La and Zhang, Federated Learning with Server Learning: Enhancing Performance for Non-IID Data
("journal"), and its conference version. With E_c the clients' passes, n samples at N clients and n_0 at the server, K
and K_0 local steps of client and server, the journal sets

    E_s = ceil(n E_c / (N n_0))      B_0 = B      eta_g = sqrt(S)      eta_0 = eta_g eta_l K / K_0

the last being the coupling K eta_l eta_g = K_0 eta_0 of its equations 11 and 15. The step really taken is gamma
eta_0. K is the number of steps wanted of clients (the mean, where they differ): partial work changes
neither the server's rate nor its number of steps. S is the cohort that a round wants, however few updates arrive.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from fedactors.learning.algorithm import Algorithm, Round, TaskSetting
from fedactors.optim.global_rate import GlobalRate, global_step
from fedactors.plan import Payload
from fedactors.workload import IDLE, Workload, workload

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class ServerLearning(Algorithm):
    """An algorithm whose server takes local steps on data of its own in every round."""

    weighting: ClassVar[str] = "uniform"

    global_lr: GlobalRate = None
    """Step of the server along the clients' mean update (eta_g); by default the square root of the cohort, S in the
    papers, where all that are asked report. `sqrt_heard` takes the updates that really arrived in the round."""
    server_weight: float = Field(default=1.0, ge=0.0)
    """Weight of the server's loss against the clients' (gamma)."""
    server_lr_base: float | None = Field(default=None, ge=0.0)
    """Rate of the server's local steps before the weight is applied (eta_0); by default coupled to the clients'."""
    server_epochs: int | None = Field(default=None, ge=0)
    """Passes over the server's data in a round (E_s); by default as many samples as a client processes."""
    server_steps: int | None = Field(default=None, ge=0)
    """Local steps of the server in a round (K_0), in place of passes."""
    server_batch: int | None = Field(default=None, ge=1)
    """Samples of a step of the server (B_0); by default as many as a client's."""

    @property
    def learns(self) -> bool:
        """The server learns from its own data."""
        return True

    @model_validator(mode="after")
    def _check_epochs_or_steps(self) -> ServerLearning:
        if self.server_epochs is not None and self.server_steps is not None:
            raise ValueError("give server_epochs or server_steps, not both")
        return self

    @property
    def wants_sgd(self) -> str:
        """The coupled rate of the server has the clients' steps in it."""
        coupled = self.server_lr_base is None and self.server_weight
        return "the server's rate is coupled to that of SGD; give server_lr_base, or take sgd" if coupled else ""

    def undefined(self, mixing: bool) -> str:
        """Return nothing: the server learns from its own data whatever was aggregated."""
        return ""

    def step(self, round: Round) -> float:
        """Return eta_g."""
        return global_step(self.global_lr, round.heard, round.setting.cohort)

    def coupled(self, round: Round) -> float:
        """Return the rate at which K_0 steps of the server go as far as K of a client: eta_l K / K_0; 0 for K_0 = 0."""
        steps = self.central_work(round.setting).wanted
        return round.lr * round.setting.steps / steps if steps else 0.0

    def central_work(self, setting: TaskSetting) -> Workload:
        """Return the server's local steps in a round, K_0; none where their weight is 0."""
        if not self.server_weight or not setting.central:
            return IDLE
        epochs = self.server_epochs
        if epochs is None and self.server_steps is None and setting.epochs is not None:
            epochs = ceil(setting.samples * setting.epochs / (setting.clients * setting.central))
        steps = (round(setting.steps) if self.server_steps is None else self.server_steps) if epochs is None else None
        batch = self.server_batch or setting.batch
        replaced = setting.with_replacement
        return workload(setting.central, batch, epochs=epochs, steps=steps, with_replacement=replaced)

    def central_samples(self, setting: TaskSetting) -> int:
        """Return the samples that the server processes in a round."""
        work = self.central_work(setting)
        return work.samples(work.wanted)


class Incremental(ServerLearning):
    """The server continues from the aggregate: journal, Algorithm 1, or conference, Algorithm 1.

    The conference version averages models (eta_g = 1) and has one free rate, `server_lr`.
    """

    version: Literal["journal", "conference"] = "journal"
    """Whose parameters: gamma and eta_0, coupled to the clients' rate; or `server_lr` and plain averaging."""
    server_lr: float | None = Field(default=None, ge=0.0)
    """Rate of the server's local steps in the conference version; what the journal calls gamma eta_0."""

    @model_validator(mode="after")
    def _check_version_options(self) -> Incremental:
        if self.version == "journal" and self.server_lr is not None:
            raise ValueError("server_lr belongs to version: conference; the journal has server_weight, server_lr_base")
        if self.version == "conference":
            if self.server_lr is None:
                raise ValueError("version: conference needs server_lr")
            if self.global_lr not in (None, 1.0) or self.server_lr_base is not None or self.server_weight != 1.0:
                raise ValueError("version: conference averages models and has server_lr only")
        return self

    @property
    def wants_sgd(self) -> str:
        """The conference version's rate of the server is its own."""
        return super().wants_sgd if self.version == "journal" else ""

    @property
    def server_rate_key(self) -> str:
        """The conference version has no eta_g."""
        return super().server_rate_key if self.version == "journal" else ""

    def step(self, round: Round) -> float:
        """Return eta_g."""
        return 1.0 if self.version == "conference" else super().step(round)

    def server_rate(self, round: Round) -> float:
        """Return the rate of the server's local steps, gamma eta_0 in the journal's terms."""
        if self.server_lr is not None:
            return self.server_lr
        base = self.server_lr_base
        return self.server_weight * (self.step(round) * self.coupled(round) if base is None else base)

    def payload(self, setting: TaskSetting) -> Payload:
        """Return FedAvg's traffic; the server's steps come after the aggregation, K_0 of them."""
        return Payload(after=self.central_samples(setting))

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """xbar <- x + eta_g sum_i w_i Delta_i ; x <- LocalSGD(xbar, gamma eta_0, K_0, D_0)."""
        return self._continued(state["x"] + self.step(round) * sums["delta"], round, central)

    def idle(self, state: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- LocalSGD(x, gamma eta_0, K_0, D_0): the server learns also without updates."""
        return self._continued(state["x"], round, central)

    def _continued(self, xbar: Tensor, round: Round, central: CentralData) -> dict[str, Tensor]:
        work = self.central_work(round.setting)
        return {"x": central.learn(xbar, self.server_rate(round), work, round.version)}
