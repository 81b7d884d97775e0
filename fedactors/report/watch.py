"""Follows a run in the terminal while it goes on, or shows how one went: from its folder alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedactors.errors import RunFolderError, visible
from fedactors.report.palette import OUTCOME, label
from fedactors.report.terminal_text import joules, size, span
from fedactors.run_files.files import (
    FAULTS,
    METRICS,
    SCENARIO,
    SUMMARY,
    objects_in,
    problem,
    reading,
    scenario_text,
    whole_lines,
    yaml_of,
)
from fedactors.run_files.locks import lock
from fedactors.run_files.records import check_run_folder
from fedactors.run_files.summary_file import summary_of
from fedactors.run_files.writer_note import WRITER

Row = Mapping[str, Any]

_EVERY = 0.5  # seconds between looks
_QUIET = 6  # looks without news before asking whether anybody still writes
_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60
_LONGEST = 200  # characters that are shown of a name
_LARGEST = 10**18  # a figure of one round: their sum can be told
_HIGHEST = 1e100  # a measure that is drawn
_SPENT = ("bytes_down", "bytes_up", "joules", "wall_seconds", "virtual_seconds")
_CURVES = ("accuracy", "train_loss")


def follow(folder: str | Path, pause: Callable[[float], None] = time.sleep) -> Iterator[list[Row]]:
    """Yield all rows of metrics so far, whenever there are more, until the run has ended or nobody writes to it.

    A run that is resumed begins again where its checkpoint was. Raises RunFolderError if `folder` is not a run's.
    """
    path = Path(folder) / METRICS
    if not path.exists():
        raise problem(Path(folder), f"not a run folder: it holds no {METRICS}")
    check_run_folder(path.parent)
    seen, quiet = -1, 0
    while True:
        ended = (path.parent / SUMMARY).exists()  # looked up before reading: no row is added after the summary
        rows = _rows(path)
        if len(rows) != seen:
            seen, quiet = len(rows), 0
            yield rows
        quiet += 1
        if ended or (quiet > _QUIET and not _claimed(path)):
            return
        pause(_EVERY)


def _rows(path: Path) -> list[Row]:
    rows: list[Row] = list(objects_in(path, whole_lines(path)))
    for number, row in enumerate(rows, start=1):
        _check(path, number, row)
    return rows


def _check(path: Path, line: int, row: Row) -> None:
    """Raise RunFolderError if a figure that is shown of a row is no number that can be computed with."""
    outcomes = row.get("outcomes", {})
    if not isinstance(outcomes, Mapping):
        raise problem(path, f"outcomes: found {_short(outcomes)}", "a JSON object", line)
    for name, value in [*((name, row.get(name, 0)) for name in _SPENT), *outcomes.items()]:
        if not (isinstance(value, int | float) and 0 <= value <= _LARGEST):
            raise problem(path, f"{name}: found {_short(value)}", "a finite number, not negative", line)
    for name in _CURVES:
        if not isinstance(row.get(name), int | float | None):
            raise problem(path, f"{name}: found {_short(row[name])}", "a number", line)


def _claimed(path: Path) -> bool:
    """Say whether a process holds the run folder: where there are no locks, by the note that a writer leaves there."""
    with reading(path) as file:
        try:
            return not lock(file, shared=True) and (path.parent / WRITER).exists()
        except BlockingIOError:
            return True


def lines(folder: str | Path, rows: list[Row]) -> list[str]:
    """Return what is known of a run as lines of text."""
    path, scenario = Path(folder), _scenario(Path(folder))
    server = scenario.get("server")
    wanted = server.get("rounds") if isinstance(server, Mapping) else None
    of_all = f" of {wanted:,}" if isinstance(wanted, int) and wanted else ""
    found = [f"{visible(str(scenario.get('name', path.name))[:_LONGEST])}: round {len(rows):,}{of_all}"]
    if rows:
        found += [*(line for name in _CURVES for line in _curve(rows, name)), _outcomes(rows), _spent(rows)]
    if (path / FAULTS).exists():
        found.append(f"  faults     {sum(1 for _ in whole_lines(path / FAULTS)):,} met and mended")
    return [*found, *_ended(path)]


def _curve(rows: list[Row], column: str) -> list[str]:
    values = [row[column] for row in rows if row.get(column) is not None and abs(row[column]) <= _HIGHEST]
    if not values:
        return []
    shown = [values[k * len(values) // _WIDTH] for k in range(_WIDTH)] if len(values) > _WIDTH else values
    low, high = min(shown), max(shown)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    bars = "".join(_BARS[round((value - low) * scale)] for value in shown)
    return [f"  {column.replace('_', ' '):<11}{values[-1]:.4f}  {bars}  {low:.3f} to {high:.3f}"]


def _outcomes(rows: list[Row]) -> str:
    counts = {name: sum(row.get("outcomes", {}).get(name, 0) for row in rows) for name in OUTCOME}
    asked = max(1, sum(counts.values()))
    said = [f"{label(name)} {count:,} ({count / asked:.0%})" for name, count in counts.items() if count]
    return f"  outcomes   {', '.join(said) or 'nobody asked'}"


def _spent(rows: list[Row]) -> str:
    moved = sum(row.get("bytes_down", 0) + row.get("bytes_up", 0) for row in rows)
    energy = sum(row.get("joules", 0.0) for row in rows)
    wall = f"; {span(rows[-1]['wall_seconds'])} here" if "wall_seconds" in rows[-1] else ""
    burnt = f", {joules(energy)}" if energy else ""
    return f"  spent      {span(rows[-1].get('virtual_seconds', 0))} of virtual time, {size(moved)}{burnt}{wall}"


def _ended(path: Path) -> list[str]:
    try:
        return [f"  ended      {visible(str(summary_of(path)['ended_because'])[:_LONGEST])}"]
    except (RunFolderError, KeyError):
        return []


def _short(value: object) -> str:
    return repr(value)[:40]


def _scenario(path: Path) -> Mapping[str, Any]:
    try:
        return yaml_of(path / SCENARIO, scenario_text(path))
    except RunFolderError:
        return {}


def watch(folder: str | Path, pause: Callable[[float], None] = time.sleep) -> None:
    """Show a run on the terminal until it ends; where there is none, print it when it has ended."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console, last = Console(), list[str]()
    if not console.is_terminal:
        for rows in follow(folder, pause):
            last = lines(folder, rows)
        print("\n".join(last))
        return
    with Live(console=console, auto_refresh=False) as live:
        for rows in follow(folder, pause):
            live.update(Text("\n".join(lines(folder, rows))), refresh=True)
