"""What an earlier study left in a folder: its tables and its page are not replaced by those of other runs.

`runs.csv` names the folder of every run of a study, and that name is a digest of the run's scenario. A study may go on
in the folder if it has all variants and all seeds of the earlier one; also where recordings or data have changed since,
as its runs are then played again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.errors import UsageError
from fedactors.report.variant_names import differing, flat
from fedactors.run_files.files import problem, text_of
from fedactors.scenario.model import Scenario
from fedactors.simulation.record.code_files import code_digests, recorded_digests
from fedactors.simulation.record.recorded_scenario import scenario_data
from fedactors.study.run_folders import folder_of, replay_folder
from fedactors.study.study_cells import SEED, StudyAxis, StudyCell, crossed, merged

RUNS = "runs.csv"

_ACCEPTED = "the same runs, with more seeds or variants; or another folder: --out DIR"
_MOST = 6  # values of an axis, or seeds, in a message
_MOST_KEYS = 3


Cell = tuple[StudyCell, Scenario]


class StudyVariants(NamedTuple):
    """The runs of a study: a scenario file with overrides, what is varied, seeds, and whether only the clock runs."""

    scenario: str
    overrides: Sequence[str]
    axes: Sequence[StudyAxis]
    seeds: Sequence[int]
    clock_only: bool

    def folders(self, seed: int, out: Path) -> dict[str, Cell]:
        """Return each cell of a seed and its scenario, by the name of the folder of its run."""
        found = {}
        groups = [name for name, _ in Scenario.load(self.scenario, self.overrides).groups]
        for cell in crossed(self.axes, [seed]):
            scenario = Scenario.load(self.scenario, merged(self.overrides, cell, groups))
            run = folder_of(scenario, out)
            found[(replay_folder(run) if self.clock_only else run).name] = cell, scenario
        return found


def refuse_other(study: StudyVariants, out: Path) -> None:
    """Raise RunFolderError if tables in the folder `out` are of a study with runs that `study` does not have.

    The variants of one seed are compared, since seeds may be added.
    """
    path = out / RUNS
    rows = _rows(path) if path.exists() else []
    if not rows:
        return
    here = study.folders(int(rows[0][SEED]), out)
    for row in rows:
        if row[SEED] == rows[0][SEED] and Path(row["folder"]).name not in here:
            apart = _apart(row, study, here, out)
            if apart is not None:
                raise problem(path, f"found another study, which varies {_varied(rows)}{apart}", _ACCEPTED)
    seeds = dict.fromkeys(int(row[SEED]) for row in rows)
    if not seeds.keys() <= {*study.seeds}:
        apart = f", with the seeds {_some(seeds)} (here {_some(study.seeds)})"
        raise problem(path, f"found a study of other seeds, which varies {_varied(rows)}{apart}", _ACCEPTED)


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
    return "; ".join(f"{name} = {_some(values)}" for name, values in axes.items())


def _some(values: Iterable[object]) -> str:
    shown = [*map(str, values)]
    return ", ".join([*shown[:_MOST], *(["…"] if len(shown) > _MOST else [])])


def _apart(row: Mapping[str, str], study: StudyVariants, here: Mapping[str, Cell], out: Path) -> str | None:
    """Return how the run of a row differs from that of the same variant of `study`; empty if there is none.

    None if only recordings or data have changed since.
    """
    at = _labels(row)
    same = [mine for cell, mine in here.values() if {n: str(v) for n, v in cell.labels if n != SEED} == at]
    folder = Path(row["folder"]).name
    replayed = folder.startswith("replay-")
    if not same:
        return ""
    if replayed != study.clock_only:
        return ", by the clock alone (here with training)" if replayed else ", with training (here by the clock alone)"
    return _changed(out / folder, same[0])


def _changed(run: Path, here: Scenario) -> str | None:
    """Return how the scenario or the code of a run differs from `here`; None if it does not."""
    recorded = _recorded(run)
    if not recorded:
        return ", with other settings, code or data"
    if keys := _differences(recorded, here.dump()):
        return f", with {keys}"
    return None if recorded_digests(run) == code_digests(here) else ", with other code of yours"


def _differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    """Return in which settings two resolved scenarios differ; empty if in none."""
    flats = [flat(there), flat(here)]
    keys = [key for key in differing(flats) if key == "cluster.bits" or not key.startswith("cluster.")]
    said = [f"{key} = {flats[0].get(key)} (here {flats[1].get(key)})" for key in keys[:_MOST_KEYS]]
    more = [f"{len(keys) - _MOST_KEYS} more"] if len(keys) > _MOST_KEYS else []
    return ", ".join([*said, *more])


def _recorded(run: Path) -> dict[str, Any]:
    """Return the scenario of a run; empty if its folder is gone or damaged."""
    try:
        return scenario_data(run)
    except UsageError:
        return {}
