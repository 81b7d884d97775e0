"""Where two runs part, and how: their scenarios, the first plan and the first figures that differ, and how they end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fedactors.errors import RunFolderError
from fedactors.run.digests import WALL
from fedactors.run.past import differences

_MOST = 20  # differences of one kind that are told

Rows = list[dict[str, Any]]


def diff(one: str | Path, other: str | Path) -> dict[str, Any]:
    """Compare two run folders. Raises RunFolderError if one cannot be read.

    {"scenario": ["key: value, now VALUE"], "plans": {"equal_rounds", "first"}, "metrics": {"equal_rounds", "first"},
    "rounds": [n, n], "final": [{…}, {…}], "model_equal"}; `first` is the first round that differs, with what it has in
    each run, or None.
    """
    folders = Path(one), Path(other)
    scenarios = [_yaml(folder / "scenario.yaml") for folder in folders]
    metrics = [_lines(folder / "metrics.jsonl") for folder in folders]
    plans = [_plans(folder) for folder in folders]
    summaries = [_json(folder / "summary.json") for folder in folders]
    models = [summary["digests"]["model"] for summary in summaries]
    return {
        "runs": [str(folder) for folder in folders],
        "scenario": list(differences(*scenarios)),
        "rounds": [len(rows) for rows in metrics],
        "plans": _parting(*plans),
        "metrics": _parting(*metrics),
        "final": [summary["final"] for summary in summaries],
        "model_equal": models[0] == models[1],
    }


def _parting(one: Rows, other: Rows) -> dict[str, Any]:
    """Return how many rows at the beginning are equal, and what differs in the first that is not."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        keys = [key for key in {**left, **right} if key not in WALL and left.get(key) != right.get(key)]
        if keys:
            apart = {key: [left.get(key), right.get(key)] for key in keys[:_MOST]}
            return {"equal_rounds": number, "first": {"round": number + 1, "apart": apart}}
    return {"equal_rounds": min(len(one), len(other)), "first": None}


def _plans(folder: Path) -> Rows:
    """Return one row for each plan, its orders by client among the keys."""
    import pyarrow.parquet as pq

    try:
        plans, orders = (pq.read_table(folder / f"{name}.parquet").to_pylist() for name in ("plans", "orders"))
    except OSError as error:
        raise RunFolderError(f"{folder}: its plans cannot be read: {error}") from None
    rows = {plan["version"]: dict(plan) for plan in plans}
    for order in orders:
        rows[order["version"]][f"client {order['client']}"] = {k: v for k, v in order.items() if k != "client"}
    return [rows[version] for version in sorted(rows)]


def _yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RunFolderError(f"{path}: cannot be read: {' '.join(str(error).split())[:200]}") from None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path}: cannot be read: {error} (accepted: the folder of a run that ended)") from None


def _lines(path: Path) -> Rows:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}") from None


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
        lines.append(f"  {kind:<10} the same until round {equal}; in round {first['round']}:")
        lines += [f"    {key}: {_short(a)}, now {_short(b)}" for key, (a, b) in first["apart"].items()]
    for rounds, final in zip(found["rounds"], found["final"], strict=True):
        lines.append(f"  end        after {rounds} rounds: {_figures(final)}")
    lines.append(f"  model      {'the same bits' if found['model_equal'] else 'differs'}")
    return "\n".join(lines)


def _figures(final: Mapping[str, float] | None) -> str:
    return "never examined" if not final else ", ".join(f"{key} {value:.4f}" for key, value in final.items())


def _short(value: Any) -> str:
    said = json.dumps(value)
    return said if len(said) <= 70 else f"{said[:67]}..."
