"""What an earlier study left in a folder: its tables and its page are not replaced by those of other runs.

`runs.csv` names the folder of every run of a study, and that name is a digest of the run's scenario. A study may go on
in the folder if it has all variants of the earlier one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.errors import UsageError
from fedactors.report.variant_names import differing, flat
from fedactors.run_files.files import problem, text_of
from fedactors.scenario.model import Scenario
from fedactors.simulation.record.recorded_scenario import scenario_data
from fedactors.study.run_folders import folder_of, replay_folder
from fedactors.study.study_cells import SEED, StudyAxis, StudyCell, crossed

RUNS = "runs.csv"

_ACCEPTED = "the same runs, with more seeds or variants; or another folder: --out DIR"
_MOST = 6  # values of an axis in a message
_MOST_KEYS = 3


Cell = tuple[StudyCell, Scenario]


class StudyVariants(NamedTuple):
    """The variants of a study: a scenario file with overrides, what is varied, and whether only the clock runs."""

    scenario: str
    overrides: Sequence[str]
    axes: Sequence[StudyAxis]
    clock_only: bool

    def folders(self, seed: int, out: Path) -> dict[str, Cell]:
        """Return each cell of a seed and its scenario, by the name of the folder of its run."""
        found = {}
        for cell in crossed(self.axes, [seed]):
            scenario = Scenario.load(self.scenario, (*self.overrides, *cell.overrides))
            run = folder_of(scenario, out)
            found[(replay_folder(run) if self.clock_only else run).name] = cell, scenario
        return found


def refuse_other(study: StudyVariants, out: Path) -> None:
    """Raise RunFolderError if tables in the folder `out` are of a study with variants that `study` does not have.

    The variants of one seed are compared, since seeds may be added, or not have been complete.
    """
    path = out / RUNS
    rows = _rows(path) if path.exists() else []
    if not rows:
        return
    here = study.folders(int(rows[0][SEED]), out)
    others = [row for row in rows if row[SEED] == rows[0][SEED] and Path(row["folder"]).name not in here]
    if others:
        apart = _apart(others[0], study, here, out)
        raise problem(path, f"found another study, which varies {_varied(rows)}{apart}", _ACCEPTED)


def _rows(path: Path) -> list[dict[str, str]]:
    """Return the lines of a table of runs. Raises RunFolderError if it is no such table."""
    try:
        rows = list(csv.DictReader(io.StringIO(text_of(path))))
        if all(row[SEED].isdecimal() and row["folder"] for row in rows):
            return rows
    except (csv.Error, KeyError, AttributeError):
        pass
    raise problem(path, "not the table of a study's runs", _ACCEPTED)


def _labels(row: Mapping[str, str]) -> dict[str, str]:
    """Return where a run stands: the columns before its seed."""
    names = list(row)
    return {name: row[name] for name in names[: names.index(SEED)]}


def _varied(rows: Sequence[Mapping[str, str]]) -> str:
    """Return what is varied in a table of runs, in words: "server.algorithm = fedavg, fsl"."""
    axes: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, label in _labels(row).items():
            axes.setdefault(name, {})[label] = None
    return "; ".join(f"{name} = {_some(list(values))}" for name, values in axes.items())


def _some(values: Sequence[str]) -> str:
    return ", ".join([*values[:_MOST], *(["…"] if len(values) > _MOST else [])])


def _apart(row: Mapping[str, str], study: StudyVariants, here: Mapping[str, Cell], out: Path) -> str:
    """Return how the run of a row differs from that of the same variant of `study`; empty if there is none."""
    at = _labels(row)
    same = [mine for cell, mine in here.values() if {n: str(v) for n, v in cell.labels if n != SEED} == at]
    folder = Path(row["folder"]).name
    replayed = folder.startswith("replay-")
    if not same:
        return ""
    if replayed != study.clock_only:
        return ", by the clock alone (here with training)" if replayed else ", with training (here by the clock alone)"
    return f", with {_differences(_recorded(out / folder), same[0].dump())}"


def _differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    """Return in which settings two resolved scenarios differ; if in none, what does."""
    flats = [flat(there), flat(here)]
    keys = [key for key in differing(flats) if there and not key.startswith("cluster.")]
    said = [f"{key} = {flats[0].get(key)} (here {flats[1].get(key)})" for key in keys[:_MOST_KEYS]]
    more = [f"{len(keys) - _MOST_KEYS} more"] if len(keys) > _MOST_KEYS else []
    return ", ".join([*said, *more]) or "other settings or code of yours"


def _recorded(run: Path) -> dict[str, Any]:
    """Return the scenario of a run; empty if its folder is gone or damaged."""
    try:
        return scenario_data(run)
    except UsageError:
        return {}
