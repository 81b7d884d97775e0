"""What a campaign found of an experiment: its claims with verdicts, from the results of its cells, as a JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
    found where the runs are not at hand.
    """
    found = list(cells.found.values())
    if not found:
        return None
    entry, path = cells.entry, path_of(results, cells.entry)
    table, seeds = cells.table()
    claims, beside, why = _claims(entry, table, seeds, path)
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
        "why": why or cells.fault,
        "claims": claims,
        "beside": beside,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = lines_of_keys(said)
    if not path.exists() or text_of(path) != text:
        write(path, text)
    return said


def _claims(
    entry: CampaignEntry, table: ResultTable, seeds: Sequence[int], path: Path
) -> tuple[list[dict[str, Any]], list[str], str]:
    """Return claims, the paper's table with ours beside it, and why there are none."""
    if not seeds:
        return [], [], ""
    if entry.experiment.reads_runs and any(run.folder is None for _, run in table.rows):
        before = object_of(path) if path.exists() else {}
        known = bool(before.get("claims")) and before.get("seeds") == list(seeds)
        return (before["claims"], before["beside"], "") if known else ([], [], "its runs are not on this machine")
    try:
        claims = [claim_data(claim) for claim in entry.experiment.claims(table)]
        return claims, entry.experiment.beside(table), ""
    except KeyError as error:
        return [], [], f"its claims need cells that are left out: {error.args[0]}"


def _machines(found: Sequence[CellResult]) -> list[str]:
    named = {f"{one.machine.get('processor') or 'unknown'}, {one.machine.get('cores')} cores" for one in found}
    return sorted(named)
