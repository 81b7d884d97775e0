"""All experiments by name, reduced and at the papers' size."""

from __future__ import annotations

from fedactors.errors import ScenarioError, suggestion
from fedactors.papers import (
    fedlamb,
    fsl_conference,
    fsl_full,
    fsl_journal,
    mixed_full,
    mixed_smiles,
    mixed_tasks,
)
from fedactors.papers.experiment import Experiment
from fedactors.papers.flexible import flexible_emerging, flexible_tables

REDUCED: dict[str, Experiment] = {
    **fsl_journal.REDUCED,
    **fsl_conference.REDUCED,
    **fsl_full.IMAGES,
    **flexible_tables.REDUCED,
    **flexible_emerging.REDUCED,
    **mixed_smiles.REDUCED,
    **mixed_tasks.REDUCED,
    **fedlamb.REDUCED,
}
FULL: dict[str, Experiment] = {**fsl_full.FULL, **flexible_tables.FULL, **mixed_full.FULL, **fedlamb.FULL}


def find(name: str, *, reduced: bool) -> Experiment:
    """Return an experiment. Raises ScenarioError, with what there is, if there is none of that name."""
    known = REDUCED if reduced else FULL
    if name not in known:
        size = "reduced" if reduced else "full"
        raise ScenarioError(f'no {size} experiment named "{name}"{suggestion(name, known)}')
    return known[name]
