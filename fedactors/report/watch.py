"""Follows a run in the terminal while it goes on, or shows how one went: from its folder alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedactors.errors import RunFolderError, visible
from fedactors.report.palette import label
from fedactors.report.terminal_text import joules, size, span
from fedactors.report.watched_run import CURVES, WatchedRun
from fedactors.run_files.files import (
    FAULTS,
    METRICS,
    SCENARIO,
    SUMMARY,
    problem,
    reading,
    scenario_text,
    whole_lines,
    yaml_of,
)
from fedactors.run_files.locks import lock
from fedactors.run_files.records import check_run_folder
from fedactors.run_files.summary_file import summary_of
from fedactors.run_files.writer_note import writer_elsewhere, writer_lives

_EVERY = 0.5  # seconds between looks
_QUIET = 6  # looks without news before asking whether anybody still writes
_PATIENCE = 2400  # looks without news after which a writer on another machine is not waited for any more
_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60
_LONGEST = 200  # characters that are shown of a name


def follow(folder: str | Path, pause: Callable[[float], None] = time.sleep) -> Iterator[WatchedRun]:
    """Yield the figures of a run so far, whenever there are more, until it has ended or nobody writes to it.

    A run that is resumed begins again where its checkpoint was. Raises RunFolderError if `folder` is not a run's.
    """
    path = Path(folder) / METRICS
    if not path.exists():
        raise problem(Path(folder), f"not a run folder: it holds no {METRICS}")
    check_run_folder(path.parent)
    run = WatchedRun(path)
    quiet, first = 0, True
    while True:
        ended = (path.parent / SUMMARY).exists()  # looked up before reading: no row is added after the summary
        if run.look() or first:
            quiet, first = 0, False
            yield run
        quiet += 1
        if ended or (quiet > _QUIET and not _awaited(path, quiet)):
            return
        pause(_EVERY)


def _awaited(path: Path, quiet: int) -> bool:
    """Say whether a process may still write to the metrics at `path`, after so many looks without news.

    Where there are no locks, the note of the writer is asked: its process lives, or it is on another machine, which is
    waited for as long as a round may take.
    """
    with reading(path) as file:
        try:
            if lock(file, shared=True):
                return False
        except BlockingIOError:
            return True
    return quiet <= _PATIENCE if writer_elsewhere(path.parent) else writer_lives(path.parent)


def lines(folder: str | Path, run: WatchedRun) -> list[str]:
    """Return what is known of a run as lines of text."""
    path, scenario = Path(folder), _scenario(Path(folder))
    server = scenario.get("server")
    wanted = server.get("rounds") if isinstance(server, Mapping) else None
    of_all = f" of {wanted:,}" if isinstance(wanted, int) and wanted else ""
    found = [f"{visible(str(scenario.get('name', path.name))[:_LONGEST])}: round {run.rounds:,}{of_all}"]
    if run.rounds:
        found += [*(line for name in CURVES for line in _curve(name, run.curves[name])), _outcomes(run), _spent(run)]
    if (path / FAULTS).exists():
        found.append(f"  faults     {sum(1 for _ in whole_lines(path / FAULTS)):,} met and mended")
    return [*found, *_ended(path)]


def _curve(column: str, values: Sequence[float]) -> list[str]:
    if not values:
        return []
    shown = [values[k * len(values) // _WIDTH] for k in range(_WIDTH)] if len(values) > _WIDTH else values
    low, high = min(shown), max(shown)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    bars = "".join(_BARS[round((value - low) * scale)] for value in shown)
    return [f"  {column.replace('_', ' '):<11}{values[-1]:.4f}  {bars}  {low:.3f} to {high:.3f}"]


def _outcomes(run: WatchedRun) -> str:
    asked = max(1, sum(run.outcomes.values()))
    said = [f"{label(name)} {count:,} ({count / asked:.0%})" for name, count in run.outcomes.items() if count]
    return f"  outcomes   {', '.join(said) or 'nobody asked'}"


def _spent(run: WatchedRun) -> str:
    wall = f"; {span(run.last['wall_seconds'])} here" if "wall_seconds" in run.last else ""
    burnt = f", {joules(run.joules)}" if run.joules else ""
    virtual = span(run.last.get("virtual_seconds", 0))
    return f"  spent      {virtual} of virtual time, {size(run.bytes_moved)}{burnt}{wall}"


def _given_up(path: Path) -> list[str]:
    """Return why a run is not waited for any more that has not ended by itself; nothing if it has."""
    if (path / SUMMARY).exists():
        return []
    if elsewhere := writer_elsewhere(path):
        minutes = _PATIENCE * _EVERY / 60
        return [
            f"  no end     nothing new for {minutes:.0f} minutes, or killed: see whether {elsewhere} is still there"
        ]
    return ["  no end     no process writes to it: it was killed, or its machine failed"]


def _ended(path: Path) -> list[str]:
    try:
        return [f"  ended      {visible(str(summary_of(path)['ended_because'])[:_LONGEST])}"]
    except (RunFolderError, KeyError):
        return []


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
        for run in follow(folder, pause):
            last = lines(folder, run)
        print("\n".join([*last, *_given_up(Path(folder))]))
        return
    with Live(console=console, auto_refresh=False) as live:
        for run in follow(folder, pause):
            last = lines(folder, run)
            live.update(Text("\n".join(last)), refresh=True)
        live.update(Text("\n".join([*last, *_given_up(Path(folder))])), refresh=True)
