"""What cells will cost: as other seeds of the same place took, else a forecast, which is kept beside the runs.

A forecast takes seconds, so that at most three places of an experiment have one; the others take their mean.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

from fedactors.papers.campaign.campaign_cells import ExperimentCells
from fedactors.papers.wanted_cells import Labels, place
from fedactors.run_files.files import damaged, object_of
from fedactors.run_files.writing import write
from fedactors.scenario.model import Scenario
from fedactors.study.run_folders import folder_of
from fedactors.study.study_cells import StudyCell

_BUDGET = 2.0  # seconds for timing an engine
_FILE = "forecasts.json"


class CellCosts:
    """Seconds of cells on this machine; forecasts are made once and kept in the folder of the runs."""

    def __init__(
        self, runs: Path, tell: Callable[[str], None], forecast: Callable[[Scenario], float] | None = None
    ) -> None:
        self._path = runs / _FILE
        self._kept = _forecasts(self._path) if self._path.exists() else {}
        self._forecast = forecast or forecast_seconds
        self._tell = tell
        self._foreseen: dict[tuple[str, str], dict[Labels, float]] = {}

    def of(self, cells: ExperimentCells) -> list[tuple[StudyCell, float]]:
        """Return the missing cells of an experiment with their seconds. Raises UsageError if it cannot be run here."""
        missing = cells.missing
        if not missing:
            return []
        measured: dict[Labels, list[float]] = {}
        for labels, result in cells.found.items():
            if not result.failure:
                measured.setdefault(place(labels), []).append(result.wall_seconds)
        known = {**self._forecasts(cells, missing), **{where: fmean(took) for where, took in measured.items()}}
        otherwise = fmean(known.values())
        return [(cell, known.get(place(cell.labels), otherwise)) for cell in missing]

    def _forecasts(self, cells: ExperimentCells, missing: Sequence[StudyCell]) -> dict[Labels, float]:
        """Return forecasts of the first, the middle and the last place of an experiment."""
        key = (cells.entry.size, cells.entry.name)
        if key not in self._foreseen:
            places = list({place(cell.labels): cell for cell in missing}.items())
            chosen = {n: places[n] for n in (0, len(places) // 2, len(places) - 1)}
            self._foreseen[key] = {where: self._of(cells, cell) for where, cell in chosen.values()}
        return self._foreseen[key]

    def _of(self, cells: ExperimentCells, cell: StudyCell) -> float:
        work = cells.of(cell).work
        scenario = Scenario.load(work.scenario, work.overrides)
        key = folder_of(scenario, work.out).name
        if key not in self._kept:
            self._tell(f"{cells.of(cell).where}: forecasting")
            self._kept[key] = round(self._forecast(scenario), 1)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write(self._path, json.dumps(self._kept) + "\n")
        return self._kept[key]


def _forecasts(path: Path) -> dict[str, float]:
    """Return the forecasts that a file keeps. Raises RunFolderError if it is damaged."""
    try:
        return {key: float(value) for key, value in object_of(path).items()}
    except (TypeError, ValueError) as error:
        raise damaged(path, str(error), "seconds for each run; without the file they are forecast again") from None


def forecast_seconds(scenario: Scenario) -> float:
    """Return the forecast of a run in one process. Raises UsageError if it cannot be run here."""
    from fedactors.simulation.checks.budget import Budget
    from fedactors.simulation.checks.forecast import forecast
    from fedactors.simulation.prepare import check_files, prepare

    check_files(scenario)
    return float(forecast(prepare(scenario), "local", budget=Budget(_BUDGET), rounds=3)["wall_seconds"])
