"""Reports of one run, and pages that compare several, as HTML files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedactors.report import costs, curves, page_sections, participation_figures, progress_axes, traffic
from fedactors.report.compare import compared
from fedactors.report.html_page import Page, Section, save
from fedactors.report.measures import totals
from fedactors.report.palette import OUTCOME, label
from fedactors.report.timeline import presence_bands
from fedactors.report.timeline.device_timeline import timeline
from fedactors.run_files.records import Records, read


def write(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the page of a run, from its records alone, to the file `out`, and return its path.

    By default it is report.html in the run folder. Raises RunFolderError if `folder` is not a run folder or is damaged,
    or if the file cannot be written.
    """
    records = read(folder)
    kind = "replay: the clock alone" if "steps_done_of_wanted" in records.summary else "run"
    page = Page(
        title=records.name,
        kind=kind,
        lead=page_sections.lead(records),
        sections=_sections(records),
        cards=[*page_sections.cards(records), *costs.cards(records)],
        parts=page_sections.parts(totals(records)),
        warnings=page_sections.warnings(records),
        digests=page_sections.digests(records),
        scenario=page_sections.scenario_shown(records),
        progress=progress_axes.clocks(records),
    )
    return save(page, Path(out or records.path / "report.html"))


def write_many(folders: Sequence[str | Path], out: str | Path, window: int | None = None) -> Path:
    """Write one page that compares two or more runs to the file `out`, and return its path.

    Accuracies and losses are means over the last `window` rounds, by default over the last tenth of the rounds.
    Raises RunFolderError if a folder is not a run folder or is damaged, or if `out` cannot be written.
    """
    return save(compared([read(folder, tables=False) for folder in folders], window), Path(out))


def _sections(records: Records) -> list[Section]:
    learned = tuple(curves.learning([records], [records.name]))
    chips = _chips(records)
    found = [
        Section("learning", "Learning", learned, (), "two", tuple(progress_axes.axes([records]))),
        Section("participation", "Participation", _drawn(participation_figures.rounds(records)),
                (page_sections.outcomes(records),) if sum(totals(records).values()) else (), "wide"),
        Section("timeline", "Timeline", _drawn(timeline(records)), outcomes=chips),
        Section("work", "Work done",
                _drawn(participation_figures.steps(records), participation_figures.clients(records)), (), "two"),
        Section("reached", "To each accuracy", (), _drawn(costs.milestones(records))),
        Section("energy", "Energy by stage and group", (), _drawn(costs.by_stage(records))),
        Section("groups", "Groups of devices", (), _drawn(page_sections.groups(records)), "", (), chips),
        Section("days", "Days and traffic",
                _drawn(participation_figures.hours(records), presence_bands.hours(records), traffic.traffic(records),
                       costs.staleness(records)), (), "two"),
        Section("real", "Real time", (), _drawn(costs.real_time(records))),
        Section("faults", "Real faults, met and mended", (), _drawn(page_sections.faults(records))),
    ]  # fmt: skip
    return [_titled(section) for section in found if section.charts or section.tables]


def _titled(section: Section) -> Section:
    """Give a section that lost one of its two charts the room and the title of the other."""
    if section.key == "days" and len(section.charts) == 1:
        return replace(section, title="Traffic", layout="")
    return section


def _drawn(*parts: Any) -> tuple[Any, ...]:
    return tuple(part for part in parts if part is not None)


def _chips(records: Records) -> tuple[dict[str, str], ...]:
    return tuple({"said": label(name), "color": OUTCOME[name]} for name, count in totals(records).items() if count)
