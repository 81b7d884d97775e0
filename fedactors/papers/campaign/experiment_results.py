"""What a campaign found of an experiment: its claims with verdicts, from the results of its cells, as a JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.papers.campaign.campaign_cells import ExperimentCells
from fedactors.papers.campaign.campaign_file import CampaignEntry
from fedactors.papers.campaign.cell_results import CHANGED, CellResult, lines_of_keys
from fedactors.papers.experiment import ResultTable
from fedactors.papers.results_text import claim_data
from fedactors.run_files.files import text_of
from fedactors.run_files.writing import write

SCHEMA = "fedactors/paper-experiment/1"


def path_of(results: Path, entry: CampaignEntry) -> Path:
    """Return the file of an experiment."""
    return results / entry.size / f"{entry.name}.json"


def judge(results: Path, cells: ExperimentCells) -> dict[str, Any] | None:
    """Write what the cells say of the experiment's claims, and return it; None while no cell ever had a result.

    Claims rest on the seeds that have a result at every place.
    """
    found = list(cells.found.values())
    entry, path = cells.entry, path_of(results, cells.entry)
    if not found and not path.exists():
        return None
    table, seeds = cells.table()
    found_claims = _claims(cells, table, seeds)
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
        "uncommitted": sum(result.code.get("commit", "").endswith(CHANGED) for result in found),
        "machines": _machines(found),
        "wall_seconds": round(sum(result.wall_seconds for result in found), 1),
        "why": found_claims.why or cells.fault,
        "claims": list(found_claims.claims),
        "beside": list(found_claims.beside),
    }
    _write(path, lines_of_keys(said))
    return said


def _write(path: Path, text: str) -> None:
    """Write a file, unless it has that text already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or text_of(path) != text:
        write(path, text)


class _Found(NamedTuple):
    """The claims of an experiment, the paper's table with ours beside it, and why there are none."""

    claims: Sequence[dict[str, Any]] = ()
    beside: Sequence[str] = ()
    why: str = ""


def _claims(cells: ExperimentCells, table: ResultTable, seeds: Sequence[int]) -> _Found:
    """Return what the table says of the claims."""
    experiment = cells.entry.experiment
    if not seeds:
        return _Found()
    try:
        return _Found([claim_data(claim) for claim in experiment.judged(table)], experiment.beside(table))
    except KeyError as error:
        return _Found(why=f"its claims need cells that are left out: {error.args[0]}")


def _machines(found: Sequence[CellResult]) -> list[str]:
    return sorted({_machine(one.machine) for one in found})


def _machine(machine: Mapping[str, Any]) -> str:
    return f"{machine.get('processor') or 'unknown'}, {machine['cores']} cores" if machine else "unknown"
