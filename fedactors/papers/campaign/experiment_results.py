"""What a campaign found of an experiment: its claims with verdicts, from the results of its cells, as a JSON file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.papers.campaign.campaign_cells import ExperimentCells
from fedactors.papers.campaign.campaign_file import CampaignEntry
from fedactors.papers.campaign.cell_results import CellResult, lines_of_keys
from fedactors.papers.experiment import ResultTable
from fedactors.papers.results_text import claim_data
from fedactors.run_files.files import object_of, text_of
from fedactors.run_files.writing import write

SCHEMA = "fedactors/paper-experiment/1"


def path_of(results: Path, entry: CampaignEntry) -> Path:
    """Return the file of an experiment."""
    return results / entry.size / f"{entry.name}.json"


def judge(results: Path, cells: ExperimentCells) -> dict[str, Any] | None:
    """Write what the cells say of the experiment's claims, and return it; None while no cell has a result.

    Claims rest on the seeds that have a result at every place. Claims that look into run folders are kept as they were
    found where the runs are not at hand, as long as the cells are those that they were found from.
    """
    found = list(cells.found.values())
    if not found:
        return None
    entry, path = cells.entry, path_of(results, cells.entry)
    table, seeds = cells.table()
    found_claims = _claims(cells, table, seeds, path)
    said = {
        "schema": SCHEMA,
        "experiment": entry.name,
        "size": entry.size,
        "title": entry.experiment.title,
        "note": entry.note,
        "overrides": list(entry.overrides),
        "reported": entry.experiment.reported,
        "seeds": seeds,
        "seeds_wanted": list(entry.experiment.seeds),
        "cells": sum(cell.labels in cells.found for cell in cells.wanted),
        "cells_wanted": len(cells.wanted),
        "engines": sorted({result.engine for result in found}),
        "commits": sorted({result.code.get("commit", "") for result in found} - {""}),
        "machines": _machines(found),
        "wall_seconds": round(sum(result.wall_seconds for result in found), 1),
        "why": found_claims.why or cells.fault,
        **({"claims_rest_on": found_claims.rest_on} if found_claims.rest_on else {}),
        "claims": list(found_claims.claims),
        "beside": list(found_claims.beside),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = lines_of_keys(said)
    if not path.exists() or text_of(path) != text:
        write(path, text)
    return said


class _Found(NamedTuple):
    """The claims of an experiment, the paper's table with ours beside it, and why there are none."""

    claims: Sequence[dict[str, Any]] = ()
    beside: Sequence[str] = ()
    why: str = ""
    rest_on: str = ""  # digest of the cells, of claims that look into run folders; those found before it have none


def _claims(cells: ExperimentCells, table: ResultTable, seeds: Sequence[int], path: Path) -> _Found:
    """Return what the table says of the claims; of those that look into runs that are not here, what was found."""
    experiment = cells.entry.experiment
    if not seeds:
        return _Found()
    rest_on = _digest(cells, table) if experiment.reads_runs else ""
    if rest_on and any(run.folder is None for _, run in table.rows):
        return _found_before(path, seeds, rest_on)
    try:
        claims = [claim_data(claim) for claim in experiment.judged(table)]
        return _Found(claims, experiment.beside(table), "", rest_on)
    except KeyError as error:
        return _Found(why=f"its claims need cells that are left out: {error.args[0]}")


def _found_before(path: Path, seeds: Sequence[int], rest_on: str) -> _Found:
    """Return what the file `path` has of the claims, if that was found from the same seeds and cells."""
    before = object_of(path) if path.exists() else {}
    noted = before.get("claims_rest_on", "")
    same = before.get("seeds") == list(seeds) and noted in ("", rest_on)
    if same and before.get("claims"):
        return _Found(before["claims"], before["beside"], "", noted)
    return _Found(why="its runs are not on this machine")


def _digest(cells: ExperimentCells, table: ResultTable) -> str:
    """Return the SHA-256 of the digests of the runs that a table is made of."""
    said = [[labels, dict(cells.found[tuple(labels.items())].digests)] for labels, _ in table.rows]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _machines(found: Sequence[CellResult]) -> list[str]:
    named = {f"{one.machine.get('processor') or 'unknown'}, {one.machine.get('cores')} cores" for one in found}
    return sorted(named)
