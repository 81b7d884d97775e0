"""Which aggregator of several made each Plan of a run folder, and from which models: as rows, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from fedactors.plan import Plan, Tier
from fedactors.run_files.files import TIERS, damaged
from fedactors.run_files.tables import TIER_COLUMNS, rows_of


def rows_of_tier(version: int, tier: Tier) -> list[tuple[Any, ...]]:
    """Return a row of TIER_COLUMNS for each model of the mixture from which a Plan starts."""
    return [(version, tier.edge, model, share, tier.moved, tier.number, tier.edge_round) for model, share in tier.mixed]


def tiers_of(run: Path) -> Iterator[tuple[int, Tier]]:
    """Yield the version and the tier of each Plan that has one; nothing where the run folder `run` has no such table.

    Raises RunFolderError if it cannot be read.
    """
    path = run / TIERS
    if path.exists():
        for version, rows in groupby(rows_of(path, TIER_COLUMNS), key=itemgetter(0)):
            yield version, _tier(path, list(rows))


def with_tiers(run: Path, plans: Iterable[Plan]) -> Iterator[Plan]:
    """Yield the `plans` of a run folder with their tiers. Raises RunFolderError if these are those of other plans."""
    tiers = tiers_of(run)
    held = next(tiers, None)
    for plan in plans:
        if held is None or held[0] != plan.version:
            yield plan
            continue
        yield replace(plan, tier=held[1])
        held = next(tiers, None)
    if held is not None:
        raise damaged(run / TIERS, "tiers of a round that plans.parquet does not have")


def _tier(path: Path, rows: list[tuple[Any, ...]]) -> Tier:
    """Return the tier of one Plan from its rows. Raises RunFolderError if they are of several aggregators."""
    if len({(edge, *further) for _, edge, _, _, *further in rows}) > 1:
        raise damaged(path, f"several aggregators in round {rows[0][0] + 1}")
    _, edge, _, _, *further = rows[0]
    return Tier(edge, tuple((model, share) for _, _, model, share, *_ in rows), *further)
