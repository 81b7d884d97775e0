"""How the server runs its rounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from fedactors.options import Options
from fedactors.scenario.alternate_options import AlternateOptions
from fedactors.scenario.client_numbers import Cohort, OverSelection, Quorum, number_of
from fedactors.scenario.costs.energy_options import SpendingLimits
from fedactors.scenario.costs.secure_options import SecureAggregation
from fedactors.scenario.kinds import (
    Aggregation,
    Algorithm,
    Membership,
    Schedule,
    Selection,
    ServerData,
    Timing,
    Weighting,
)
from fedactors.scenario.local_options import LocalOptions
from fedactors.scenario.privacy_options import PrivacyOptions
from fedactors.scenario.stop_options import StopOptions
from fedactors.scenario.transform_list import TransformList
from fedactors.scenario.units import NONE_IS_NULL, Duration

Window = Annotated[Duration | None, NONE_IS_NULL]


class PretrainingOptions(Options):
    """Passes of the server over its own data before the first round."""

    epochs: int = Field(ge=0, le=1_000_000)
    lr: float = Field(default=0.01, ge=0.0, allow_inf_nan=False)
    batch: int | None = Field(default=None, ge=1, le=1_000_000)
    """Samples of a step; by default as many as a client's."""


class FineTuneOptions(Options):
    """What a client does before its model is evaluated; nothing of it is kept, and no virtual time is charged."""

    epochs: int | None = Field(default=None, ge=1, le=100_000)
    steps: int | None = Field(default=None, ge=1, le=10_000_000)
    lr: float = Field(gt=0.0, allow_inf_nan=False)
    batch: int | None = Field(default=None, ge=1, le=1_000_000)
    """Samples of a step; by default as many as in training."""

    @model_validator(mode="after")
    def _check_epochs_or_steps(self) -> FineTuneOptions:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        return self


class ClientEvaluation(Options):
    """How good models are at single clients."""

    every: int = Field(default=10, ge=1)
    """Rounds between evaluations; the last round is always evaluated."""
    clients: Annotated[int, Field(ge=1, le=10_000_000)] | Literal["all"] = 100
    """How many clients are evaluated, drawn anew each time among those that belong to the population then."""
    on: Literal["held_out", "test"] = "held_out"
    """Each on test samples of its own, given to it as its training samples are; or all on the whole test set."""
    model: Literal["own", "global"] = "own"
    """What a client would use: its own model or personal part, where it has one; or the server's model."""
    fine_tune: FineTuneOptions | None = None
    """Steps of each client on its own training data before its model is evaluated."""


def _participation_of_the_paper(value: Any, checked: ValidationInfo) -> Any:
    """Return the participation that a scenario names; if none, that of its timing or else of its algorithm."""
    timing, algorithm = checked.data.get("timing"), checked.data.get("algorithm")
    if value is not None:
        return value
    if timing is None or algorithm is None:  # they have errors of their own, which are reported
        return "samples"
    return timing.weighting or algorithm.weighting


def _over_all_rounds(schedule: Any, checked: ValidationInfo) -> Any:
    """Return a schedule that has a rate above 0 for every round of the run."""
    rounds, timing = checked.data.get("rounds"), checked.data.get("timing")
    if rounds is None or timing is None:  # they have errors of their own, which are reported
        return schedule
    lasting = schedule.lasting(timing.scheduled(rounds))
    if problem := lasting.problem(timing.scheduled(rounds)):
        raise ValueError(problem)
    return lasting


class ServerOptions(Options):
    """How the server runs its rounds."""

    rounds: int = Field(ge=1, le=10_000_000)
    timing: Timing = Field(default="synchronous", validate_default=True)
    """When the server aggregates: in rounds, or as updates come in, also from older models."""
    cohort: Cohort = "all"
    """How many clients a round wants: a number, a share of all devices such as 0.1, or `all`."""
    deadline: Window = None
    """How long a round waits for them, or how long a trip may take where there are no rounds; `none` waits."""
    close_early: bool = True
    """Close a round when everybody asked has reported; if not, every round lasts until its deadline."""
    until: Window = None
    """Virtual time at which no further round begins."""
    secure: SecureAggregation | None = None
    """Secure aggregation, as what it costs and as a rule: `{group: 100, threshold: 0.7}`."""
    budget: SpendingLimits | None = None
    """What may be spent, of energy, carbon or traffic, before no further round begins: `{energy: 5 kWh}`."""
    over_selection: OverSelection = 0
    """How many more than the cohort are asked: a number, or a share of the cohort such as 0.3."""
    quorum: Quorum = None
    """How many updates close a round: a number, or a share of the cohort such as 0.8; by default the cohort when more
    are asked, else everybody asked."""
    selection: Selection = Field(default="uniform", validate_default=True)
    """Whom the server asks among those it could."""
    among: Literal["available", "members"] = "available"
    """Who can be asked: devices that are on, or all that have arrived and not departed."""
    algorithm: Algorithm = Field(default="fedavg", validate_default=True)
    personal: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Patterns (fnmatch) of parameters, by name, that stay at the clients: trained there, not sent, not averaged."""
    alternate: AlternateOptions | None = None
    """How many of a trip's first steps train the personal part alone, the others training the rest alone (FedRep)."""
    participation: Annotated[Weighting, BeforeValidator(_participation_of_the_paper)] = Field(
        default=None, validate_default=True
    )
    """What weight each update has; by default what the algorithm's paper has, or `uniform` under `timing: fedbuff`."""
    aggregation: Aggregation = Field(default="mean", validate_default=True)
    """How updates are combined: by their mean, or by a rule that a few malicious ones cannot move."""
    uplink: TransformList = ()
    """What is done to updates on their way to the server, in this order: compression, clipping, noise."""
    downlink: TransformList = ()
    """What is done to models on their way to the clients, in this order."""
    privacy: PrivacyOptions | None = None
    """Account for the noise of `uplink`: epsilon of every round, at a delta."""
    local: LocalOptions = LocalOptions(epochs=1)
    membership: Membership | None = None
    """How the objective and its test set follow arrivals and departures; by default they do not: weights are shares
    over those asked, and the whole test set counts."""
    schedule: Annotated[Schedule, AfterValidator(_over_all_rounds)] = Field(
        default={"name": "constant", "lr": 0.1}, validate_default=True
    )
    """The clients' learning rate, round by round."""
    server_schedule: Annotated[Schedule, AfterValidator(_over_all_rounds)] | None = None
    """The server's rate, round by round, in place of the algorithm's `global_lr` or `server_optimizer.lr`."""
    data: ServerData | None = None
    """Data of the server's own, for algorithms that learn from them, for pretraining and for `dissimilarity_every`."""
    pretraining: PretrainingOptions | None = None
    """What the server learns from its own data before the first round, whatever the algorithm."""
    dissimilarity_every: int | None = Field(default=None, ge=1)
    """Rounds between measurements of xi^2 and G^2, the first round included; full gradients at every client."""
    compute_per_sample: Duration = 0
    """Virtual time of the server's own learning, per sample."""
    evaluate_every: int = Field(default=1, ge=1)
    """Rounds between evaluations on the test set; the last round is always evaluated."""
    stop: StopOptions | None = None
    """When the run ends before its last round: `{accuracy: 0.9}`, or `{loss: {below: 0.3}, patience: 5}`."""

    evaluation: ClientEvaluation | None = None
    """How good models are at single clients; by default that is not measured."""
    bad_updates: Literal["fail", "quarantine", "stop"] = "fail"
    """When an update holds NaN or Inf: an error, or go on without it, or end the run there as diverged."""
    divergence_threshold: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    """The run ends, as diverged, with the first round whose train loss is above this."""

    @model_validator(mode="after")
    def _check_round_end(self) -> ServerOptions:
        if self.deadline == 0:
            raise ValueError("deadline must be longer than 0; write none to wait for everybody")
        if not self.close_early and self.deadline is None:
            raise ValueError("close_early: false needs a deadline")
        if self.cohort == "all":
            if self.over_selection:
                raise ValueError("over_selection needs a cohort that is a number, not all")
            return self
        self._check_quorum()
        return self

    def of(self, devices: int) -> ServerOptions:
        """Return these options for a population of `devices`, with numbers in place of shares.

        A cohort is a share of them; over-selection and quorum are shares of the cohort, or of all devices where all are
        asked. Shares are rounded to the nearest number, halves up, and are at least 1. Raises ValueError if the quorum
        is more than are asked.
        """
        cohort = number_of(self.cohort, devices)
        whole = devices if cohort == "all" else cohort
        others = {key: number_of(getattr(self, key), whole) for key in ("over_selection", "quorum")}
        numbers = {"cohort": cohort, **others}
        changed = {key: number for key, number in numbers.items() if number != getattr(self, key)}
        if not changed:
            return self
        counted = self.model_copy(update=changed)
        counted._check_quorum()
        return counted

    def _check_quorum(self) -> None:
        """Raise ValueError if more updates are wanted than clients are asked, as far as these are numbers by now."""
        if isinstance(self.cohort, int) and isinstance(self.over_selection, int) and isinstance(self.quorum, int):
            asked = self.cohort + self.over_selection
            if self.quorum > asked:
                raise ValueError(f"quorum {self.quorum} is more than the {asked} clients asked")

    @model_validator(mode="after")
    def _check_server_data(self) -> ServerOptions:
        if self.data is None and (user := self._user_of_data()):
            raise ValueError(f"{user} needs data of the server's own; give server.data")
        return self

    @model_validator(mode="after")
    def _check_server_rate(self) -> ServerOptions:
        if self.server_schedule is None:
            return self
        key = self.algorithm.server_rate_key
        if not key:
            raise ValueError(
                f'server_schedule: algorithm "{self.algorithm.name}" has no rate of the server to follow it'
            )
        owner: Any = self.algorithm if key == "global_lr" else getattr(self.algorithm, "server_optimizer", None)
        if not owner.has_default(key.rpartition(".")[2]):
            raise ValueError(f"give server_schedule or algorithm.{key}, not both")
        return self

    @model_validator(mode="after")
    def _check_dissimilarity_weights(self) -> ServerOptions:
        measured = self.dissimilarity_every is not None and self.algorithm.centre in ("before", "beside")
        if measured and not 0 < self.algorithm.central_share < 1:
            raise ValueError("dissimilarity_every divides by both weights: central_weight must lie between 0 and 1")
        return self

    @model_validator(mode="after")
    def _check_asynchronous_options(self) -> ServerOptions:
        """Refuse what has no meaning where updates start from older models, with the reason."""
        timing = self.timing
        if not timing.asynchronous:
            return self
        for key in ("cohort", "over_selection", "quorum", "close_early", "membership"):
            if not self.has_default(key):
                instead = timing.says_whom if key == "cohort" else "leave it out"
                raise ValueError(f"{key} belongs to synchronous rounds (accepted: {instead})")
        if self.participation.of_those_asked:
            raise ValueError(
                f'participation "{self.participation.name}" weighs updates by those asked in the same round, which'
                f' timing "{timing.name}" does not have (accepted: uniform, samples, examples)'
            )
        if reason := self.algorithm.undefined(timing.mixes):
            raise ValueError(f'algorithm "{self.algorithm.name}" is undefined under timing "{timing.name}": {reason}')
        return self

    @model_validator(mode="after")
    def _check_aggregation(self) -> ServerOptions:
        """Refuse a rule for single updates where what is summed is no mean of updates, with the reason."""
        rule = self.aggregation
        if not rule.single:
            return self
        algorithm, timing = self.algorithm, self.timing
        participation = self.participation
        fast = self.membership is not None and self.membership.name != "vanilla"
        reasons = {
            f'algorithm "{algorithm.name}" sums more than the updates of models': not algorithm.sums_updates_only,
            f'timing "{timing.name}" mixes whole models': timing.mixes,
            f'updates under timing "{timing.name}" began from different models': timing.asynchronous,
            f'participation "{participation.name}" does not make a mean of them': participation.of_those_asked,
            "membership fast-reboot weighs updates by their arrival": fast,
        }
        if reason := next((text for text, holds in reasons.items() if holds), ""):
            raise ValueError(f'aggregation: "{rule.name}" combines updates one by one, and {reason} (accepted: mean)')
        return self

    def _user_of_data(self) -> str:
        """Name what cannot do without data of the server's own, if anything."""
        users = {
            f'algorithm "{self.algorithm.name}"': self.algorithm.learns or self.algorithm.shares,
            "pretraining": self.pretraining is not None,
            "dissimilarity_every": self.dissimilarity_every is not None and self.algorithm.centre == "none",
        }
        return next((name for name, needs in users.items() if needs), "")

    @property
    def closes_at(self) -> int | None:
        """Number of updates that closes a round; None waits for everybody asked."""
        if self.quorum is None and self.over_selection and isinstance(self.cohort, int):
            return self.cohort
        return self.quorum
