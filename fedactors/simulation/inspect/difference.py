"""Differences of two runs: of their scenarios, the first plan and the first figures that differ, and their ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedactors.run_files.files import METRICS, SUMMARY, TIERS, damaged, lines_of
from fedactors.run_files.summary_file import summary_of
from fedactors.run_files.tables import ORDER_COLUMNS, PLAN_COLUMNS, columns_of
from fedactors.run_files.tier_table import tiers_of
from fedactors.simulation.record.digests import WALL
from fedactors.simulation.record.recorded_scenario import scenario_data
from fedactors.simulation.resume.resume import differences

_MOST = 20  # differences of one kind that are listed
_CLIENT = "client "  # begins the key of an order among a plan's
_MODELS = {True: "the same bits", False: "differs", None: "none in a replay"}

Rows = list[dict[str, Any]]


def diff(one: str | Path, other: str | Path) -> dict[str, Any]:
    """Compare two run folders. Raises RunFolderError if one cannot be read.

    {"scenario": ["key: value, now VALUE"], "plans": {"equal_rounds", "first"}, "metrics": {"equal_rounds", "first"},
    "rounds": [n, n], "final": [{…}, {…}], "model_equal", "made_with": ["program: version, now VERSION"]};
    `first` is the first round that differs, with what it has in each run, or None. A replay has no model: if one of
    them is a replay, `metrics` are compared by what a replay has too, and `model_equal` is None; `replays` says which.
    """
    folders = Path(one), Path(other)
    before, now = (scenario_data(folder) for folder in folders)
    metrics = [lines_of(folder / METRICS) for folder in folders]
    plans = [_plans(folder) for folder in folders]
    finals, models = zip(*map(_end, folders), strict=True)
    replays = [model is None for model in models]
    return {
        "runs": [str(folder) for folder in folders],
        "scenario": list(differences(before, now)),
        "rounds": [len(rows) for rows in metrics],
        "plans": _parting(*plans),
        "metrics": _parting(*metrics, only_common=any(replays)),
        "replays": replays,
        "final": list(finals),
        "model_equal": None if None in models else models[0] == models[1],
        "made_with": [] if any(replays) else list(differences(_made_with(folders[0]), _made_with(folders[1]))),
    }


def _parting(one: Rows, other: Rows, *, only_common: bool = False) -> dict[str, Any]:
    """Return how many rows at the beginning are equal, and what differs in the first that is not.

    With `only_common`, keys that one of two rows lacks are no difference.
    """
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        names = [key for key in left if key in right] if only_common else {**left, **right}
        keys = [key for key in names if key not in WALL and left.get(key) != right.get(key)]
        if keys:
            apart = {key: [left.get(key), right.get(key)] for key in keys[:_MOST]}
            return {"equal_rounds": number, "first": {"round": number + 1, "apart": apart}}
    return {"equal_rounds": min(len(one), len(other)), "first": None}


def _end(folder: Path) -> tuple[dict[str, float] | None, str | None]:
    """Return the last figures of a run, None if never evaluated, and the digest of its model; a replay has neither."""
    found = summary_of(folder)
    try:
        digests = found["digests"]
        return (found["final"], digests["model"]) if "model" in digests else (None, None)
    except (KeyError, TypeError) as error:
        raise damaged(folder / SUMMARY, f"no final figures and digests ({error})") from None


def _made_with(folder: Path) -> Mapping[str, Any]:
    """Return the programs and instructions that a run was computed with; empty if its folder does not say."""
    found = summary_of(folder).get("made_with")
    return found if isinstance(found, dict) else {}


def _plans(folder: Path) -> Rows:
    """Return one row for each plan, with its tier and its orders, by client, and by trip of those asked again.

    Raises RunFolderError if a table cannot be read, or is that of other plans.
    """
    plans = columns_of(folder / "plans.parquet", PLAN_COLUMNS)
    orders = columns_of(folder / "orders.parquet", ORDER_COLUMNS)
    try:
        rows = {plan["version"]: dict(plan) for plan in plans.to_pylist()}
        trips: Counter[tuple[int, int]] = Counter()
        for order in orders.to_pylist():
            version, client = order["version"], order["client"]
            trips[version, client] += 1
            number = trips[version, client]
            name = f"{_CLIENT}{client}, trip {number}" if number > 1 else f"{_CLIENT}{client}"
            rows[version][name] = {k: v for k, v in order.items() if k != "client"}
    except (ValueError, KeyError) as error:
        raise damaged(folder / "orders.parquet", f"orders without a plan, or without {error}") from None
    for version, tier in tiers_of(folder):
        if version not in rows:
            raise damaged(folder / TIERS, f"a tier of round {version + 1}, which plans.parquet does not have")
        rows[version] |= tier._asdict()
    return [rows[version] for version in sorted(rows)]


def text(found: Mapping[str, Any]) -> str:
    """Return a comparison for a terminal."""
    one, other = found["runs"]
    lines = [f"{one}\n{other}"]
    lines += [f"  scenario   {change}" for change in found["scenario"][:_MOST]] or ["  scenario   the same"]
    for kind in ("plans", "metrics"):
        first, equal = found[kind]["first"], found[kind]["equal_rounds"]
        if first is None:
            lines.append(f"  {kind:<10} the same in {equal} rounds")
            continue
        before = f"the same until round {equal}" if equal else "not the same"
        lines.append(f"  {kind:<10} {before}; in round {first['round']}:")
        lines += [f"    {key}: {_change(key, *pair)}" for key, pair in first["apart"].items()]
    for rounds, final, replay in zip(found["rounds"], found["final"], found["replays"], strict=True):
        lines.append(f"  end        after {rounds} rounds: {'a replay' if replay else _figures(final)}")
    lines.append(f"  model      {_MODELS[found['model_equal']]}")
    lines += [f"  made with  {change}" for change in found["made_with"]]
    return "\n".join(lines)


def _figures(final: Mapping[str, float] | None) -> str:
    return (
        "never evaluated"
        if not final
        else ", ".join(f"{key} {'unknown' if value is None else format(value, '.4f')}" for key, value in final.items())
    )


def _change(key: str, before: Any, now: Any) -> str:
    """Return what differs; of two orders, which have ten columns and more, the columns that do."""
    if isinstance(before, dict) and isinstance(now, dict):
        apart = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return "; ".join(f"{name} {_short(before.get(name))}, now {_short(now.get(name))}" for name in apart)
    if key.startswith(_CLIENT):
        return "not asked, now asked" if before is None else "asked, now not asked"
    return f"{_short(before)}, now {_short(now)}"


def _short(value: Any) -> str:
    said = json.dumps(value)
    return said if len(said) <= 70 else f"{said[:67]}..."
