"""Differences of two runs: of their scenarios, the first plan and the first figures that differ, and their ends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fedactors.run_files.files import METRICS, SUMMARY, damaged, objects_in, reading
from fedactors.run_files.summary_file import summary_of
from fedactors.simulation.inspect.recorded_plans import CLIENT, RecordedPlans
from fedactors.simulation.record.digests import WALL
from fedactors.simulation.record.recorded_scenario import scenario_data
from fedactors.simulation.resume.resume import differences

_MOST = 20  # differences of one kind that are listed
_MODELS = {True: "the same bits", False: "differs", None: "none in a replay"}

Row = dict[str, Any]


def diff(one: str | Path, other: str | Path) -> dict[str, Any]:
    """Compare two run folders. Raises RunFolderError if one cannot be read.

    {"scenario": ["key: value, now VALUE"], "plans": {"equal_rounds", "first"}, "metrics": {"equal_rounds", "first"},
    "rounds": [n, n], "final": [{…}, {…}], "model_equal", "made_with": ["program: version, now VERSION"]};
    `first` is the first round that differs, with what it has in each run, or None. A replay has no model: if one of
    them is a replay, `metrics` are compared by what a replay has too, and `model_equal` is None; `replays` says which.
    """
    folders = Path(one), Path(other)
    before, now = (scenario_data(folder) for folder in folders)
    finals, models = zip(*map(_end, folders), strict=True)
    replays = [model is None for model in models]
    rounds, metrics = _parting_metrics(folders, only_common=any(replays))
    return {
        "runs": [str(folder) for folder in folders],
        "scenario": list(differences(before, now)),
        "rounds": rounds,
        "plans": _parting_plans(*map(RecordedPlans, folders)),
        "metrics": metrics,
        "replays": replays,
        "final": list(finals),
        "model_equal": None if None in models else models[0] == models[1],
        "made_with": [] if any(replays) else list(differences(_made_with(folders[0]), _made_with(folders[1]))),
    }


def _parting_plans(one: RecordedPlans, other: RecordedPlans) -> Row:
    """Return how many plans at the beginning are equal, and what differs in the first that is not."""
    for number, left, right in one.unlike(other):
        if apart := _apart(left, right):
            return _first(number, apart)
    return _none(min(len(one), len(other)))


def _parting_metrics(runs: Sequence[Path], *, only_common: bool) -> tuple[list[int], Row]:
    """Return how many rows of metrics each of two runs has, and where they part, as `_parting_plans` does.

    With `only_common`, keys that one of two rows lacks are no difference.
    """
    counts, found = [0, 0], None
    with reading(runs[0] / METRICS) as one, reading(runs[1] / METRICS) as other:
        files = [objects_in(run / METRICS, lines) for run, lines in zip(runs, (one, other), strict=True)]
        for rows in zip_longest(*files):
            left, right = rows
            if found is None and None not in rows and (apart := _apart(left, right, only_common=only_common)):
                found = _first(min(counts), apart)
            counts = [count + (row is not None) for count, row in zip(counts, rows, strict=True)]
    return counts, found or _none(min(counts))


def _apart(left: Row, right: Row, *, only_common: bool = False) -> Row:
    """Return the first keys that differ in two rows, with both values; empty if none does."""
    names = [key for key in left if key in right] if only_common else {**left, **right}
    keys = [key for key in names if key not in WALL and left.get(key) != right.get(key)]
    return {key: [left.get(key), right.get(key)] for key in keys[:_MOST]}


def _first(number: int, apart: Row) -> Row:
    return {"equal_rounds": number, "first": {"round": number + 1, "apart": apart}}


def _none(equal: int) -> Row:
    return {"equal_rounds": equal, "first": None}


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
    if key.startswith(CLIENT):
        return "not asked, now asked" if before is None else "asked, now not asked"
    return f"{_short(before)}, now {_short(now)}"


def _short(value: Any) -> str:
    said = json.dumps(value)
    return said if len(said) <= 70 else f"{said[:67]}..."
