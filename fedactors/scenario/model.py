"""The scenario: everything a run depends on, as a user writes it and as the run folder keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from fedactors.errors import ScenarioError, suggestion
from fedactors.options import Options
from fedactors.registry import lookup
from fedactors.scenario.choice import Choice
from fedactors.scenario.population import GroupOptions
from fedactors.scenario.sweep_options import Sweep
from fedactors.scenario.units import Duration, Size

_none = BeforeValidator(lambda value: None if value == "none" else value)
_transform = BeforeValidator(lambda value: {"name": "torchvision", **value} if isinstance(value, dict) else value)
Window = Annotated[Duration | None, _none]


class TaskOptions(Options):
    """What is learned, and from whose data."""

    dataset: Annotated[Any, Choice("datasets")]
    model: Annotated[Any, Choice("models")]
    partition: Annotated[Any, Choice("partitions")]
    split: Annotated[Any, Choice("splits", optional=True)] = None
    """What part of the data lies with a central learner and at no client."""
    transform: Annotated[Any, Choice("transforms", optional=True), _transform] = None
    """What is done to images, `{train: [...], test: [...]}`: transforms of torchvision by their names."""

    def info(self, seed: int, clients: int) -> Any:
        """Return what is known of the data without loading them."""
        info = self._by_client().info(seed, clients)
        info = self.split.info(info) if self.split else info
        return self.transform.info(info) if self.transform else info

    def load(self, seed: int, clients: int) -> Any:
        """Return the data. Raises DataError if they cannot be read."""
        data = self._by_client().load(seed, clients)
        data = self.split.apply(data) if self.split else data
        return self.transform.apply(data, seed) if self.transform else data

    def check(self) -> None:
        """Look for the files of the data. Raises DataError if one is missing."""
        self._by_client().check()

    def _by_client(self) -> Any:
        """Return the data set, its samples by client if the partition says how."""
        if (by := getattr(self.partition, "by", None)) is None:
            return self.dataset
        if not hasattr(self.dataset, "grouped_by"):
            raise ScenarioError(
                f'task.partition.by: found {by}, but "{self.dataset.name}" has no columns (accepted: data of your own:'
                " torch, csv, parquet, image_folder, hugging_face, tff)"
            )
        return self.dataset.grouped_by(by)


class LocalOptions(Options):
    """What a client does with a model: passes over its data, or a number of steps."""

    epochs: int | None = Field(default=None, ge=1, le=100_000)
    steps: int | None = Field(default=None, ge=1, le=10_000_000)
    batch: int = Field(default=10, ge=1, le=1_000_000)
    drop_last: bool = False
    """Leave out the short batch at the end of a pass."""
    update_unit: Literal["step", "epoch"] = "step"
    """What counts as work done when time runs out: single steps, or whole passes."""
    optimizer: Annotated[Any, Choice("optimizers")] = Field(default="sgd", validate_default=True)
    """What takes the steps, at the rate of `schedule`; its state restarts with every trip."""

    @model_validator(mode="after")
    def _one_measure(self) -> LocalOptions:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        if self.steps is not None and self.update_unit == "epoch":
            raise ValueError("update_unit: epoch counts whole passes (accepted: epochs in place of steps)")
        return self


class PretrainingOptions(Options):
    """Passes of the server over its own data before the first round."""

    epochs: int = Field(ge=0, le=1_000_000)
    lr: float = Field(default=0.01, ge=0.0, allow_inf_nan=False)
    batch: int | None = Field(default=None, ge=1, le=1_000_000)
    """Samples of a step; by default as many as a client's."""


class ServerOptions(Options):
    """How the server runs its rounds."""

    rounds: int = Field(ge=1, le=10_000_000)
    timing: Annotated[Any, Choice("timing")] = Field(default="synchronous", validate_default=True)
    """When the server aggregates: in rounds, or as updates come in, also from older models."""
    cohort: int | Literal["all"] = "all"
    """How many clients a round wants."""
    deadline: Window = None
    """How long a round waits for them, or how long a trip may take where there are no rounds; `none` waits."""
    close_early: bool = True
    """Close a round when everybody asked has reported; if not, every round lasts until its deadline."""
    until: Window = None
    """Virtual time at which no further round begins."""
    over_selection: int = Field(default=0, ge=0, le=10_000_000)
    """How many more than the cohort are asked."""
    quorum: int | None = Field(default=None, ge=1)
    """How many updates close a round; by default the cohort when more are asked, else everybody asked."""
    selection: Annotated[Any, Choice("selection")] = Field(default="uniform", validate_default=True)
    """Whom the server asks among those it could."""
    among: Literal["available", "members"] = "available"
    """Who can be asked: devices that are on, or all that have arrived and not departed."""
    algorithm: Annotated[Any, Choice("algorithms")] = Field(default="fedavg", validate_default=True)
    participation: Annotated[Any, Choice("participation", optional=True)] = None
    """What weight each update has; by default what the algorithm's paper has."""
    local: LocalOptions = LocalOptions(epochs=1)
    membership: Annotated[Any, Choice("membership", optional=True)] = None
    """How the objective and its test set follow arrivals and departures; by default they do not: weights are shares
    over those asked, and the whole test set counts."""
    schedule: Annotated[Any, Choice("schedules")] = Field(
        default={"name": "constant", "lr": 0.1}, validate_default=True
    )
    data: Annotated[Any, Choice("server_data", optional=True)] = None
    """Data of the server's own, for algorithms that learn from them, for pretraining and for `dissimilarity_every`."""
    pretraining: PretrainingOptions | None = None
    """What the server learns from its own data before the first round, whatever the algorithm."""
    dissimilarity_every: int | None = Field(default=None, ge=1)
    """Rounds between measurements of xi^2 and G^2, the first round included; full gradients at every client."""
    compute_per_sample: Duration = 0
    """Virtual time of the server's own learning, per sample."""
    evaluate_every: int = Field(default=1, ge=1)
    """Rounds between evaluations on the test set; the last round is always evaluated."""

    bad_updates: Literal["fail", "quarantine", "stop"] = "fail"
    """When an update holds NaN or Inf: an error, or go on without it, or end the run there as diverged."""
    divergence_threshold: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    """The run ends, as diverged, with the first round whose train loss is above this."""

    @model_validator(mode="after")
    def _a_round_can_end(self) -> ServerOptions:
        if isinstance(self.cohort, int) and self.cohort < 1:
            raise ValueError("cohort must be at least 1")
        if self.deadline == 0:
            raise ValueError("deadline must be longer than 0; write none to wait for everybody")
        if not self.close_early and self.deadline is None:
            raise ValueError("close_early: false needs a deadline")
        if self.cohort == "all" and self.over_selection:
            raise ValueError("over_selection needs a cohort that is a number, not all")
        asked = None if self.cohort == "all" else self.cohort + self.over_selection
        if asked is not None and self.quorum is not None and self.quorum > asked:
            raise ValueError(f"quorum {self.quorum} is more than the {asked} clients asked")
        if self.data is None and (user := self._user_of_data()):
            raise ValueError(f"{user} needs data of the server's own; give server.data")
        beside = self.algorithm.centre in ("before", "beside")
        if self.dissimilarity_every is not None and beside and not 0 < self.algorithm.central_share < 1:
            raise ValueError("dissimilarity_every divides by both weights: central_weight must lie between 0 and 1")
        return self

    @model_validator(mode="after")
    def _participation_of_the_paper(self) -> ServerOptions:
        """Fill in the algorithm's own participation, so that the resolved scenario shows it."""
        if self.participation is None:
            name = self.timing.weighting or self.algorithm.weighting
            self.__dict__["participation"] = lookup("participation", name)()
        return self

    @model_validator(mode="after")
    def _defined_without_rounds(self) -> ServerOptions:
        """Refuse what has no meaning where updates start from older models, with the reason."""
        timing = self.timing
        if not timing.asynchronous:
            return self
        for key in ("cohort", "over_selection", "quorum", "close_early", "membership"):
            if getattr(self, key) != type(self).model_fields[key].default:
                instead = "timing.concurrency" if key == "cohort" else "leave it out"
                raise ValueError(f"{key} belongs to synchronous rounds (accepted: {instead})")
        if self.participation.of_those_asked:
            raise ValueError(
                f'participation "{self.participation.name}" weighs updates by those asked in the same round, which'
                f' timing "{timing.name}" does not have (accepted: uniform, samples, examples)'
            )
        if reason := self.algorithm.undefined(timing.mixes):
            raise ValueError(f'algorithm "{self.algorithm.name}" is undefined under timing "{timing.name}": {reason}')
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


class ClusterOptions(Options):
    """Where it is computed. Nothing in here changes a result."""

    actors: int | None = Field(default=None, ge=1, le=4096)
    """Client hosts; one per core when absent."""
    cpus_per_actor: float = Field(default=1.0, gt=0.0)
    gpus_per_actor: float = Field(default=0.0, ge=0.0)
    server_gpus: float = Field(default=0.0, ge=0.0)
    """GPUs of the server; more than 0 puts what it learns from its own data there."""
    central_cpus: float = Field(default=0.0, ge=0.0)
    """Cores kept for the central learner of mixed federated learning; with 0 it shares those that hosts leave."""
    central_gpus: float = Field(default=0.0, ge=0.0)
    """GPUs of the central learner; more than 0 puts its work there."""
    object_store: Size | None = Field(default=None, ge=100_000_000)
    """Memory for models and for what clients keep, when Ray is started here; what does not fit is spilled to disk."""
    price_per_node_hour: float | None = Field(default=None, ge=0.0)
    """What one machine costs for an hour of wall time, in any currency; the summary then says what the run cost."""
    checkpoint_every: Annotated[Annotated[int, Field(ge=1)] | None, _none] = 25
    """Rounds between checkpoints, and one when the run ends; `none` writes that one alone."""
    checkpoints_kept: int = Field(default=2, ge=1)
    """How many of them stay, the last ones; with more, `fedactors branch` has less to compute again."""
    resources: dict[str, dict[str, Annotated[float, Field(gt=0.0)]]] = Field(default_factory=dict)
    """Further Ray resources of a client host, by the population group it computes: `{phones: {arm: 1}}`."""
    address: str | None = None
    """An existing Ray cluster (`auto` or `ray://…`); one is started on this machine when absent."""


class Scenario(Options):
    """One experiment: a task, a population, a server's policy, a cluster and a seed."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    seed: int = Field(default=0, ge=0, lt=2**63)
    task: TaskOptions
    population: list[GroupOptions] = Field(min_length=1)
    server: ServerOptions
    cluster: ClusterOptions = ClusterOptions()
    precision: Literal["fp32", "tf32", "bf16"] = "fp32"
    """How exactly models are trained: in float32, with factors rounded to TF32 (on GPUs only), or under autocast to
    bfloat16. Parameters, updates, sums and evaluations are float32."""
    sweep: Sweep | None = Field(default=None, exclude=True)
    """Variants of this scenario for `fedactors sweep`; no part of any run."""
    _source: str = PrivateAttr(default="")
    _folder: Path = PrivateAttr(default=Path())

    @model_validator(mode="after")
    def _groups_and_cohort_agree(self) -> Scenario:
        names = [group.name for group in self.population]
        for name in self.cluster.resources:
            if name not in names:
                raise ValueError(f'cluster.resources: no population group "{name}"{suggestion(name, names)}')
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f'population: two groups are called "{name}"')
        cohort, devices = self.server.cohort, self.devices
        if self.server.quorum is not None and self.server.quorum > devices:
            raise ValueError(f"server.quorum: {self.server.quorum} updates cannot come from {devices} devices")
        timing = self.server.timing
        if timing.asynchronous and max(timing.concurrency, timing.updates or 0) > devices:
            raise ValueError(
                f"server.timing: {timing.concurrency} clients at work and {timing.updates or 'no'} updates to wait for"
                f" cannot come from {devices} devices (accepted: at most {devices})"
            )
        if isinstance(cohort, int) and cohort + self.server.over_selection > devices:
            raise ValueError(
                f"server.cohort: {cohort} + {self.server.over_selection} clients cannot be asked"
                f" of {devices} devices (accepted: at most {devices} in all)"
            )
        return self

    @model_validator(mode="after")
    def _tf32_has_a_gpu(self) -> Scenario:
        if self.precision == "tf32" and not self.cluster.gpus_per_actor:
            raise ValueError(
                "precision: tf32 is a format of GPUs, and clients are computed on the CPU"
                " (accepted: cluster.gpus_per_actor above 0, or fp32 or bf16)"
            )
        return self

    @property
    def devices(self) -> int:
        """Number of devices in all groups; clients are numbered group after group from 0."""
        return sum(group.count for group in self.population)

    @property
    def source(self) -> str:
        """What to call this scenario in a message: its file, or its name."""
        return self._source or f'scenario "{self.name}"'

    @property
    def folder(self) -> Path:
        """Folder of the scenario file; relative paths of traces start here."""
        return self._folder

    @classmethod
    def load(cls, path: str | Path, overrides: Iterable[str] = ()) -> Scenario:
        """Read a scenario file, apply `key.path=value` overrides and validate.

        Raises ScenarioError, naming the file, the line or key path, what was found and what is accepted.
        """
        from fedactors.scenario.loading import load

        return load(Path(path), overrides)

    def dump(self) -> dict[str, Any]:
        """Return the resolved scenario, every default shown, in the form of the YAML file."""
        return self.model_dump(mode="json")
