"""A run folder for its audit: tables, rows and summary, under the names that a prepared scenario gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.energy.tariff import tariff_of
from fedactors.errors import RunFolderError
from fedactors.own_code.user_code import CODE, may_use_copies
from fedactors.plan import Plan
from fedactors.run_files.files import METRICS, SCENARIO, SUMMARY, damaged, lines_of, problem
from fedactors.run_files.stage_table import with_stages
from fedactors.run_files.summary_file import summary_of
from fedactors.run_files.tables import CLIENT_COLUMNS, plans_of, rows_of
from fedactors.run_files.tier_table import with_tiers
from fedactors.scenario.loading import validate
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.prepare_task import workloads_of
from fedactors.simulation.record.eras import Era, Eras
from fedactors.simulation.record.recorded_scenario import scenario_data
from fedactors.simulation.resume.checkpoint import PastScenario, checkpoints, header_of
from fedactors.workload import WorkloadTable


@dataclass(frozen=True)
class People:
    """Columns over the clients: samples trained on, instants of arrival and departure, ns."""

    samples: NDArray[np.int64]
    arrive: NDArray[np.int64]
    depart: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.samples)


@dataclass(frozen=True)
class Assigned:
    """What weights depend on in some rounds of a run, see `AssignedScenario`."""

    scenario: Scenario
    held: NDArray[np.int64]
    population: People
    workload_table: WorkloadTable


@dataclass(frozen=True)
class Recorded:
    """A run folder as the checks read it; what weights depend on has the names that `Prepared` gives it."""

    path: Path

    @cached_property
    def scenario(self) -> Scenario:
        """The resolved scenario. Raises RunFolderError if that would execute code that came with the folder."""
        return self._validated(scenario_data(self.path))

    @cached_property
    def eras(self) -> Eras:
        """The scenarios of the run. Raises as `scenario`."""
        past: Sequence[PastScenario] = ()
        for path in checkpoints(self.path)[:1]:
            with suppress(RunFolderError):  # what is damaged is told of elsewhere
                past = header_of(path).past
        return Eras(tuple(Era(one["rounds"], self._validated(one["scenario"])) for one in past), self.scenario)

    def _validated(self, found: Mapping[str, Any]) -> Scenario:
        """Return a scenario from its data. Raises RunFolderError if that would execute code of the folder."""
        if found.get("plugins") and not may_use_copies():
            named = ", ".join(map(str, found["plugins"])) if isinstance(found["plugins"], list) else "plugins"
            accepted = f"--run-code, which executes the copies in {self.path / CODE}"
            raise problem(self.path / SCENARIO, f"names Python code of a user: {named[:200]}", accepted)
        return validate(found, str(self.path / SCENARIO), folder=self.path)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What summary.json holds."""
        return summary_of(self.path)

    @property
    def wire(self) -> dict[str, Any]:
        """Bytes on the wire, see `Prepared.wire`."""
        found = self.summary.get("wire")
        if not isinstance(found, dict) or not {"down", "up", "once", "ahead"} <= found.keys():
            raise damaged(self.path / SUMMARY, 'it does not say how many bytes a trip moves ("wire")')
        return found

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl."""
        return lines_of(self.path / METRICS)

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """Samples that each client trains on."""
        return self.population.samples

    @cached_property
    def population(self) -> People:
        """Who takes part."""
        found = np.array([row[2:] for row in rows_of(self.path / "clients.parquet", CLIENT_COLUMNS)], np.int64)
        return People(*found.reshape(-1, 3).T)

    @cached_property
    def workload_table(self) -> WorkloadTable:
        """What each client is asked to do."""
        return WorkloadTable(workloads_of(self.held, self.scenario))

    def during(self, scenario: Scenario) -> Assigned:
        """Return what weights depend on in the rounds in which a scenario of the run held."""
        return Assigned(scenario, self.held, self.population, self.workload_table)

    @property
    def trained(self) -> bool:
        """Whether it is the folder of a run, not of a replay."""
        return "model" in self.summary.get("digests", {})

    def plans(self) -> Iterator[Plan]:
        """Yield the plans."""
        tariff = tariff_of(self.scenario)
        plans = with_tiers(self.path, plans_of(self.path))
        return plans if tariff is None or not tariff.has_watts else with_stages(self.path, plans)
