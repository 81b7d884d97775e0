"""The cells of an experiment in a campaign: which are wanted, which have a result, and the table of those that do."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from fedactors.errors import UsageError
from fedactors.papers.campaign.campaign_file import Campaign, CampaignEntry
from fedactors.papers.campaign.cell_results import CellResult, file_name, load
from fedactors.papers.experiment import Measures, ResultTable
from fedactors.papers.wanted_cells import Labels, table_of, wanted
from fedactors.scenario.loading import apply_overrides
from fedactors.scenario.yaml_text import parse, read
from fedactors.study.runs import StudyRun
from fedactors.study.study_cells import SEED, StudyCell
from fedactors.version import ENGINE


class CampaignCell(NamedTuple):
    """A cell, the run that it needs, and where its result is kept."""

    entry: CampaignEntry
    cell: StudyCell
    work: StudyRun
    file: Path

    @property
    def where(self) -> str:
        """The experiment and the cell's labels, for a person."""
        labels = ", ".join(f"{axis} {label}" for axis, label in self.cell.labels)
        return f"{self.entry.name}{' (reduced)' if self.entry.reduced else ''}, {labels}"


class ExperimentCells:
    """The cells of one experiment of a campaign, with the results that are there.

    With `again`, results of other engines do not count.
    """

    def __init__(self, campaign: Campaign, entry: CampaignEntry, *, again: bool = False) -> None:
        self.entry = entry
        self.scenario = campaign.scenarios / entry.experiment.scenario
        self._runs = campaign.runs
        self._folder = campaign.results / entry.size / entry.name
        self._again = again
        self.found: dict[Labels, CellResult] = {}
        self.changed: list[str] = []  # cells whose result is of a scenario that has changed since
        self.fault = ""  # why cells cannot be run here
        for cell in entry.experiment.cells():
            self.look(cell)

    @property
    def wanted(self) -> list[StudyCell]:
        """The cells that are known to be needed; where axes are tuned, further ones follow from the first seed's."""
        return wanted(self.entry.experiment, self._measures)

    @property
    def _measures(self) -> dict[Labels, Measures]:
        return {labels: result.measures for labels, result in self.found.items()}

    @property
    def missing(self) -> list[StudyCell]:
        """The wanted cells without a result."""
        return [cell for cell in self.wanted if cell.labels not in self.found]

    def of(self, cell: StudyCell) -> CampaignCell:
        """Return what a cell needs."""
        work = StudyRun(self.scenario, (*cell.overrides, *self.entry.overrides), self._runs)
        return CampaignCell(self.entry, cell, work, self._folder / file_name(cell.labels))

    def look(self, cell: StudyCell) -> None:
        """Take in the result of a cell, if there is one. Raises RunFolderError if it is damaged."""
        one = self.of(cell)
        if not one.file.exists():
            return
        result = load(one.file)
        try:
            asked = digest(one.work)
        except UsageError as error:
            self.fault = str(error)
            return
        if result.asked != asked:
            self.changed.append(one.where)
        elif not self._again or result.engine == ENGINE:
            self.found[cell.labels] = result

    def table(self) -> tuple[ResultTable, list[int]]:
        """Return the table of the seeds that have a result at every place, and those seeds."""
        cells = self.wanted
        seeds = [seed for seed in self.entry.experiment.seeds if self._has_all(cells, seed)]
        return table_of(self.entry.experiment, self._measures, seeds), seeds

    def _has_all(self, cells: list[StudyCell], seed: int) -> bool:
        mine = [cell for cell in cells if cell.at(SEED) == seed]
        return bool(mine) and all(cell.labels in self.found for cell in mine)


def digest(work: StudyRun) -> str:
    """Return the SHA-256 of what the scenario file and its overrides say, without defaults, name and cluster.

    A default that changes bits changes the engine's version; one that is new changes nothing. Raises ScenarioError.
    """
    said, _ = parse(read(work.scenario), str(work.scenario))
    apply_overrides(said, work.overrides)
    kept = {key: value for key, value in said.items() if key not in ("name", "cluster")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
