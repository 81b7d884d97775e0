"""The scenario: everything a run depends on, as a user writes it and as the run folder keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from fedactors.errors import ScenarioError, suggestion
from fedactors.options import Options
from fedactors.scenario.choice import RegisteredName
from fedactors.scenario.kinds import Dataset, ModelBuilder, Partition, SourceSplit
from fedactors.scenario.mistakes import explain
from fedactors.scenario.overrides import apply_override, source_of
from fedactors.scenario.population import GroupOptions
from fedactors.scenario.server_options import ServerOptions
from fedactors.scenario.sweep_options import Sweep
from fedactors.scenario.units import NONE_IS_NULL, Size
from fedactors.scenario.yaml_text import Lines, folder_of, parse, read

if TYPE_CHECKING:
    from fedactors.data.base import Data, Info


class TaskOptions(Options):
    """What is learned, and from whose data."""

    dataset: Dataset
    model: ModelBuilder
    partition: Partition
    split: SourceSplit | None = None
    """What part of the data lies with a central learner and at no client."""
    engine: Annotated[str | None, RegisteredName("engines")] = None
    """Which engine takes the clients' local steps. By default the first that supports the model, the optimiser and the
    device; engines differ in the last bits and in speed."""

    def info(self, seed: int, clients: int) -> Info:
        """Return what is known of the data without loading them."""
        info = self.dataset.info(seed, clients)
        return self.split.info(info) if self.split else info

    def load(self, seed: int, clients: int) -> Data:
        """Return the data. Raises DataError if they cannot be read."""
        data = self.dataset.load(seed, clients)
        return self.split.apply(data) if self.split else data


class ClusterOptions(Options):
    """Where it is computed. Nothing in here but `bits` changes a result."""

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
    checkpoint_every: Annotated[Annotated[int, Field(ge=1)] | None, NONE_IS_NULL] = 25
    """Rounds between checkpoints, and one when the run ends; `none` writes that one alone."""
    checkpoints_kept: int = Field(default=2, ge=1)
    """How many of them stay, the last ones; with more, `fedactors branch` has less to compute again."""
    resources: dict[str, dict[str, Annotated[float, Field(gt=0.0)]]] = Field(default_factory=dict)
    """Further Ray resources of a client host, by the population group it computes: `{phones: {arm: 1}}`."""
    bits: Literal["portable", "native"] = "portable"
    """Which instructions of the processor may be used: AVX2 and no later ones, for the same bits on all x86-64
    processors that have them; or all there are, for bits of one family of processors."""
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
    def _groups_have_names(self) -> Scenario:
        names = [group.name for group in self.population]
        for name in self.cluster.resources:
            if name not in names:
                raise ValueError(f'cluster.resources: no population group "{name}"{suggestion(name, names)}')
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f'population: two groups are called "{name}"')
        return self

    @model_validator(mode="after")
    def _there_are_devices_enough(self) -> Scenario:
        server, devices = self.server, self.devices
        if server.quorum is not None and server.quorum > devices:
            raise ValueError(f"server.quorum: {server.quorum} updates cannot come from {devices} devices")
        server.timing.check_devices(devices)
        if isinstance(server.cohort, int) and server.cohort + server.over_selection > devices:
            raise ValueError(
                f"server.cohort: {server.cohort} + {server.over_selection} clients cannot be asked"
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
        path = Path(path)
        data, lines = parse(read(path), str(path))
        for override in overrides:
            given = apply_override(data, override, cls)
            lines = {key: line for key, line in lines.items() if key[: len(given)] != given}
            lines[given] = source_of(override)
        return cls.from_data(data, str(path), lines, folder_of(path))

    @classmethod
    def from_data(cls, data: Any, source: str, lines: Lines | None = None, folder: Path | None = None) -> Scenario:
        """Validate plain data. Raises ScenarioError that names `source`, the line from `lines`, and the key path."""
        try:
            scenario = cls.model_validate(data, context={"folder": folder or Path()})
        except ValidationError as error:
            raise ScenarioError(explain(error, source, lines or {})) from None
        scenario._source = source
        scenario._folder = folder or Path()
        return scenario

    def dump(self) -> dict[str, Any]:
        """Return the resolved scenario, every default shown, in the form of the YAML file."""
        return self.model_dump(mode="json")
