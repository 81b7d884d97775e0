"""The scenario: everything a run depends on, as a user writes it and as the run folder keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from typing_extensions import Self

from fedactors import registry
from fedactors.errors import ScenarioError, suggestion
from fedactors.options import Options
from fedactors.own_code.own_plugins import engine_path
from fedactors.own_code.user_code import noted_files
from fedactors.own_code.user_errors import user_errors
from fedactors.own_code.user_modules import Source
from fedactors.scenario.cluster_options import ClusterOptions
from fedactors.scenario.local_options import LocalOptions
from fedactors.scenario.mistakes import NAME, explain
from fedactors.scenario.overrides import applied, source_of
from fedactors.scenario.plugin_files import PluginFile, plugins_in
from fedactors.scenario.population import GroupOptions
from fedactors.scenario.server_options import ServerOptions
from fedactors.scenario.sweep_options import Sweep
from fedactors.scenario.task.task_options import TaskOptions
from fedactors.scenario.yaml_text import Lines, given_data


class Scenario(Options):
    """One experiment: a task, a population, a server's policy, a cluster and a seed."""

    name: str = Field(pattern=NAME, max_length=100)
    seed: int = Field(default=0, ge=0, lt=2**63)
    plugins: list[PluginFile] = Field(default_factory=list)
    """Python files, relative to the scenario, whose classes this scenario may name: algorithms, data sets, models, …"""
    task: TaskOptions
    population: list[GroupOptions] = Field(min_length=1)
    server: ServerOptions
    cluster: ClusterOptions = ClusterOptions()
    clock: Literal["columns", "events"] = "columns"
    """How trips are computed: in columns, beforehand, or every stage of every trip as a SimPy event. Both give the same
    Plans; events are the plain reference, and many times slower. Devices whose availability is a `process` are always
    simulated event by event."""
    precision: Literal["fp32", "tf32", "bf16"] = "fp32"
    """How exactly models are trained: in float32, with factors rounded to TF32 (on GPUs only), or under autocast to
    bfloat16. Parameters, updates, sums and evaluations are float32."""
    sweep: Sweep | None = Field(default=None, exclude=True)
    """Variants of this scenario for `fedactors sweep`; no part of any run."""
    _source: str = PrivateAttr(default="")
    _folder: Path = PrivateAttr(default=Path())
    _code: dict[str, Source] = PrivateAttr(default_factory=dict)
    _own: registry.Own = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _with_own_code(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Validate with what the plugins define, and note which files of the user were read.

        A cohort that is a share of the devices becomes a number.
        """
        if isinstance(data, Scenario):
            return handler(data)
        with noted_files() as code:
            own = plugins_in(data, info)
            with registry.in_scope(own):
                scenario = handler(data)
        scenario.__dict__["server"] = scenario.server.of(scenario.devices)  # pydantic warns of a copy in its place
        scenario._code = code
        scenario._own = own
        return scenario

    @model_validator(mode="after")
    def _check_group_names(self) -> Scenario:
        names = [group.name for group in self.population]
        for name in self.cluster.resources:
            if name not in names:
                raise ValueError(f'cluster.resources: no population group "{name}"{suggestion(name, names)}')
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f'population: two groups are called "{name}"')
        return self

    @model_validator(mode="after")
    def _check_device_count(self) -> Scenario:
        devices = self.devices
        server = self.server.of(devices)
        if server.quorum is not None and server.quorum > devices:
            raise ValueError(f"server.quorum: {server.quorum} updates cannot come from {devices} devices")
        server.timing.check_devices(devices)
        server.timing.check_edges([group.edge for group in self.population], server)
        names = [group.name for group in self.population]
        if problem := server.selection.problem(names, server.among, server.participation):
            raise ValueError(f"server.selection.{problem}")
        if isinstance(server.cohort, int) and server.cohort + server.over_selection > devices:
            more = f" + {server.over_selection}" * bool(server.over_selection)
            raise ValueError(
                f"server.cohort: {server.cohort}{more} clients cannot be asked"
                f" of {devices} devices (accepted: at most {devices} in all)"
            )
        return self

    @model_validator(mode="after")
    def _check_local_options(self) -> Scenario:
        for number in range(len(self.population)):
            try:
                self.local_of(number)
            except ValueError as error:
                raise ValueError(f"population.{number}.local.{error}") from None
        return self

    @model_validator(mode="after")
    def _check_secure_aggregation(self) -> Scenario:
        secure = self.server.secure
        if secure is not None and (problem := secure.problem(self.server)):
            raise ValueError(f"server.secure: {problem}")
        return self

    @model_validator(mode="after")
    def _check_budget(self) -> Scenario:
        budget = self.server.budget
        if budget is not None and (problem := budget.problem([group.energy for group in self.population])):
            raise ValueError(f"server.budget.{problem}")
        return self

    @model_validator(mode="after")
    def _check_stop_measure(self) -> Scenario:
        if self.server.stop is not None:
            self.server.stop.check(self.task.own_metrics, self.task.has_accuracy)
        return self

    @model_validator(mode="after")
    def _check_tf32_needs_gpu(self) -> Scenario:
        if self.precision == "tf32" and not self.cluster.gpus_per_actor:
            raise ValueError(
                "precision: tf32 is a format of GPUs, and clients are computed on the CPU"
                " (accepted: cluster.gpus_per_actor above 0, or fp32 or bf16)"
            )
        return self

    def local_of(self, number: int) -> LocalOptions:
        """Return what the devices of group `number` do in a trip."""
        local = self.server.local
        own = self.population[number].local
        return local if own is None else own.over(local)

    @property
    def devices(self) -> int:
        """Number of devices in all groups; clients are numbered group after group from 0."""
        return sum(group.count for group in self.population)

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """Name and number of devices of each group, in the order of clients."""
        return tuple((group.name, group.count) for group in self.population)

    @property
    def source(self) -> str:
        """What to call this scenario in a message: its file, or its name."""
        return self._source or f'scenario "{self.name}"'

    @property
    def code(self) -> Mapping[str, Source]:
        """The files of the user that this scenario names, by what it calls them."""
        return self._code

    @property
    def own(self) -> registry.Own:
        """What the scenario's own plugins define, for `registry.in_scope`."""
        return self._own

    @property
    def engine(self) -> str | None:
        """The engine that the scenario names, as every process of a run finds it."""
        return engine_path(self._own, self.task.engine)

    @property
    def folder(self) -> Path:
        """Folder of the scenario file; relative paths of traces start here."""
        return self._folder

    @classmethod
    def load(cls, path: str | Path | Mapping[str, Any], overrides: Iterable[str] = ()) -> Scenario:
        """Read a scenario file, apply `key.path=value` overrides and validate.

        `path` may also be the name of a scenario that comes with fedactors, such as quickstart, or a mapping that holds
        what a file would; relative paths in it start in the current folder.

        Raises ScenarioError, naming the file, the line or key path, what was found and what is accepted.
        """
        data, lines, source, folder = given_data(path)
        for given, override in applied(data, overrides, cls):
            lines = {key: line for key, line in lines.items() if key[: len(given)] != given}
            lines[given] = source_of(override)
        return cls.from_data(data, source, lines, folder)

    @classmethod
    def from_data(cls, data: Any, source: str, lines: Lines | None = None, folder: Path | None = None) -> Scenario:
        """Validate plain data. Raises ScenarioError that names `source`, the line from `lines`, and the key path."""
        try:
            with user_errors(ScenarioError, source):
                scenario = cls.model_validate(data, context={"folder": folder or Path()})
        except ValidationError as error:
            raise ScenarioError(explain(error, source, lines or {}, data)) from None
        scenario._source = source
        scenario._folder = folder or Path()
        return scenario

    def dump(self) -> dict[str, Any]:
        """Return the resolved scenario, every default shown, in the form of the YAML file."""
        return self.model_dump(mode="json")


ScenarioLike: TypeAlias = Scenario | str | Path | Mapping[str, Any]


def as_scenario(given: ScenarioLike) -> Scenario:
    """Return a scenario as it is, or what `Scenario.load` makes of a file, a name or a mapping. Raises as it does."""
    return given if isinstance(given, Scenario) else Scenario.load(given)
