"""A run folder in a notebook: pandas frames of its tables, and pictures as matplotlib axes.

Both libraries are an extra: `pip install fedactors[notebook]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from fedactors.errors import RunFolderError
from fedactors.extras import needed
from fedactors.plan import NEVER, SECOND, Outcome, StageTimes
from fedactors.report import terminal_text
from fedactors.run_files import client_metrics
from fedactors.run_files.files import METRICS, STAGES, SUMMARY, TIERS, objects_in, whole_lines
from fedactors.run_files.records import read
from fedactors.run_files.summary_file import summary_of

_LABEL = 12  # characters, with the spaces before and after it, of a line on a terminal
_ARRIVED = (Outcome.COMPLETE, Outcome.PARTIAL, Outcome.STALE, Outcome.LOST, Outcome.QUARANTINED)
_WHERE = {client_metrics.TABLE: "server.evaluation", STAGES: "energy that depends on stages", TIERS: "edges"}
_TIMES = ("opened", "closed", "ready", "started", "downloaded", "computed", "finished")


@dataclass(frozen=True)
class Frames:
    """The tables of a run folder as pandas DataFrames, read when asked for; times in virtual seconds."""

    folder: Path

    @cached_property
    def plans(self) -> Any:
        """A row per aggregation; `round` counts as in `metrics`."""
        return _numbered(self._table("plans.parquet"))

    @cached_property
    def orders(self) -> Any:
        """A row per client asked: what it was asked for, what it did, when, and what became of it.

        `cut_in` is the stage in which a trip ended whose update did not arrive: "download", "compute" or "upload".
        """
        found = _numbered(self._table("orders.parquet"))
        return found.assign(cut_in=_cut_in(found))

    @cached_property
    def clients(self) -> Any:
        """A row per client: group, samples, arrival and departure (NaN: never), and at the end what it consumed."""
        found = self._table("clients.parquet")
        for column in ("arrive", "depart"):
            found[column] = found[column].where(found[column] < NEVER) / SECOND
        return found

    @cached_property
    def weights(self) -> Any:
        """A row per update that counted: the version it started from, and its weight."""
        return _numbered(self._table("weights.parquet"))

    @cached_property
    def stages(self) -> Any:
        """A row per client asked, where energy depends on it: seconds that it was on in each stage of its trip."""
        found = _numbered(self._table(STAGES))
        found[list(StageTimes._fields)] /= SECOND
        return found

    @cached_property
    def tiers(self) -> Any:
        """A row per model that is mixed into the one that an aggregation starts from, where there are edges."""
        return _numbered(self._table(TIERS))

    @cached_property
    def client_metrics(self) -> Any:
        """A row per client evaluated in a round, where the scenario has `server.evaluation`: samples and measures."""
        return self._table(client_metrics.TABLE)

    @cached_property
    def metrics(self) -> Any:
        """A row per round; outcomes in columns of their own, "outcomes.partial"; indexed by round."""
        path = self.folder / METRICS
        rows = list(objects_in(path, whole_lines(path)))
        pandas = needed("pandas", "notebook")
        found = pandas.json_normalize(rows)
        outcomes = [name for name in found.columns if name.startswith("outcomes.")]
        found[outcomes] = found[outcomes].fillna(0).astype(int)
        return found.set_index("round") if len(found) else found

    def _table(self, name: str) -> Any:
        """Return a table. Raises RunFolderError if it cannot be read; where it is not there, the error says why."""
        pandas = needed("pandas", "notebook")
        try:
            found = pandas.read_parquet(self.folder / name)
        except FileNotFoundError:
            raise RunFolderError(f"{self.folder / name}: not there: {self._absent(name)}") from None
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{self.folder / name}: cannot be read: {error}") from None
        times = [column for column in _TIMES if column in found]
        found[times] = found[times] / SECOND
        return found

    def _absent(self, name: str) -> str:
        """Return why the folder lacks a table."""
        if not (self.folder / SUMMARY).exists():
            return f"this run was stopped before it was written, or still goes on; `fedactors resume {self.folder}`"
        if name != TIERS and "final" not in summary_of(self.folder):
            return "a replay writes none"
        return f"it is written where the scenario has {_WHERE[name]}" if name in _WHERE else "it was removed"


def _numbered(table: Any) -> Any:
    """Return a table with rounds, which count from 1, before its versions, which count from 0."""
    table.insert(0, "round", table["version"] + 1)
    return table


def _cut_in(orders: Any) -> Any:
    """Return in which stage each trip was cut short; nothing where the update arrived, whatever became of it."""
    arrived = orders["outcome"].isin([one.value for one in _ARRIVED])
    loading = orders["downloaded"] == orders["finished"]
    computing = (orders["steps"] == 0) | (orders["computed"] == orders["finished"])
    stages = np.array([None, "download", "compute", "upload"], dtype=object)
    return stages[np.select([arrived, loading, computing], [0, 1, 2], 3)]


class RunPlots:
    """What has a run folder can be shown. Each `plot_` draws on `axes`, or on new ones, and returns them."""

    folder: Path | None

    @property
    def frames(self) -> Frames:
        """The tables as pandas DataFrames. Raises RunFolderError if nothing was written."""
        return Frames(self._path)

    @property
    def _path(self) -> Path:
        if self.folder is None:
            raise RunFolderError("nothing was written (accepted: a run or replay with a folder, out=…)")
        return self.folder

    summary: Mapping[str, Any]

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it."""
        return _page_of(self.summary, self.folder)

    def plot_accuracy(self, axes: Any = None, *, against: str = "round", **look: Any) -> Any:
        """Draw test accuracy against `round`, `virtual` time, `bytes`, `joules` or `wall` time."""
        return _plots().curve(read(self._path, tables=False), "accuracy", against, axes, look)

    def plot_loss(self, axes: Any = None, *, against: str = "round", **look: Any) -> Any:
        """Draw test loss against `round`, `virtual` time, `bytes`, `joules` or `wall` time."""
        return _plots().curve(read(self._path, tables=False), "loss", against, axes, look)

    def plot_participation(self, axes: Any = None) -> Any:
        """Draw what became of everybody asked, stacked by round."""
        return _plots().participation(read(self._path, tables=False), axes)

    def plot_steps(self, axes: Any = None) -> Any:
        """Draw how many trips did which share of the local steps they were asked for."""
        return _plots().steps(read(self._path), axes)

    def plot_hours(self, axes: Any = None) -> Any:
        """Draw trips by the hour of the virtual day in which they began."""
        return _plots().hours(read(self._path), axes)

    def plot_timeline(self, axes: Any = None, *, devices: int = 60) -> Any:
        """Draw what each of at most `devices` devices did, and when."""
        return _plots().timeline(read(self._path), axes, devices)


def _page_of(figures: Mapping[str, Any], folder: Path | None) -> str:
    """Return a table of the lines that the command line prints; of a run that was interrupted, its folder alone."""
    lines = _lines(figures, folder).splitlines()
    rows = "".join(_row(line) for line in lines[1:])
    return f"<b>{escape(lines[0])}</b><table>{rows}</table>"


def _lines(figures: Mapping[str, Any], folder: Path | None) -> str:
    if "ended_because" not in figures:
        return f"a run without a summary\n  folder     {folder}"
    form = terminal_text.summary if "final" in figures else terminal_text.replay
    return form({**figures, "folder": folder or "none"})


def _row(line: str) -> str:
    if line.startswith("    "):  # a bar of a replay
        return f'<tr><td></td><td style="text-align: left"><pre style="margin: 0">{escape(line)}</pre></td></tr>'
    label, text = line[:_LABEL].strip(), line[_LABEL:].strip()
    if not text or not line[_LABEL : _LABEL + 1].strip():
        label, text = "", line.strip()
    return f'<tr><th style="text-align: left">{escape(label)}</th><td style="text-align: left">{escape(text)}</td></tr>'


def _plots() -> Any:
    from fedactors.report import run_plots

    return run_plots
