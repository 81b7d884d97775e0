"""Writes a report: one HTML file that holds everything it needs, opens offline and asks the network for nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedactors.errors import RunFolderError
from fedactors.report import costs, curves, page_sections, participation_figures, presence_bands, traffic
from fedactors.report.figure import Chart
from fedactors.report.measures import totals
from fedactors.report.page_sections import Card, PageTable, Part
from fedactors.report.palette import OUTCOME, THEMES, label
from fedactors.report.timeline_rows import timeline
from fedactors.run_files.records import Records, read

_SCENARIO_CHARACTERS = 100_000


@dataclass(frozen=True)
class Section:
    """A part of the page: charts and tables side by side."""

    key: str
    title: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[PageTable, ...] = ()
    layout: str = ""
    axes: tuple[curves.ProgressAxis, ...] = ()
    outcomes: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True)
class Page:
    """Everything that is put into the template."""

    title: str
    kind: str
    lead: str
    sections: Sequence[Section]
    cards: Sequence[Card] = ()
    warnings: Sequence[str] = ()
    digests: Sequence[tuple[str, Any]] = ()
    parts: Sequence[Part] = ()
    scenario: str = ""
    source: str = "the records of the run folder alone"


def write(folder: str | Path) -> Path:
    """Write report.html into a run folder, from its records alone, and return its path.

    Raises RunFolderError if `folder` is not a run folder, is damaged, or cannot be written.
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
        scenario=_cut(records.scenario),
    )
    return save(page, records.path / "report.html")


def write_many(folders: Sequence[str | Path], out: str | Path) -> Path:
    """Write one page that compares several runs to the file `out`, and return its path.

    Raises RunFolderError if a folder is not a run folder or is damaged, or if `out` cannot be written.
    """
    from fedactors.report.compare import compared

    return save(compared([read(folder) for folder in folders]), Path(out))


def _sections(records: Records) -> list[Section]:
    learned = tuple(curves.learning([records], [records.name]))
    chips = _chips(records)
    found = [
        Section("learning", "Learning", learned, (), "two", tuple(curves.axes([records]))),
        Section("participation", "Participation", _drawn(participation_figures.rounds(records)),
                (page_sections.outcomes(records),) if sum(totals(records).values()) else (), "wide"),
        Section("timeline", "Timeline", _drawn(timeline(records)), outcomes=chips),
        Section("work", "Work done",
                _drawn(participation_figures.steps(records), participation_figures.clients(records)), (), "two"),
        Section("reached", "To each accuracy", (), _drawn(costs.milestones(records))),
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
    from dataclasses import replace

    if section.key == "days" and len(section.charts) == 1:
        return replace(section, title="Traffic", layout="")
    return section


def _drawn(*parts: Any) -> tuple[Any, ...]:
    return tuple(part for part in parts if part is not None)


def _chips(records: Records) -> tuple[dict[str, str], ...]:
    return tuple({"said": label(name), "color": OUTCOME[name]} for name, count in totals(records).items() if count)


def _cut(text: str) -> str:
    return text if len(text) <= _SCENARIO_CHARACTERS else text[:_SCENARIO_CHARACTERS] + "\n… cut here"


def save(page: Page, path: Path) -> Path:
    """Render a page into a file that appears whole or not at all."""
    text = render(page)
    pending = path.with_name(f".{path.name}.part")
    try:
        pending.write_text(text, encoding="utf-8")
        pending.replace(path)
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def render(page: Page) -> str:
    """Return the page as HTML."""
    from dataclasses import fields

    from jinja2 import Environment
    from markupsafe import Markup

    from fedactors import __version__
    from fedactors.report.script import SCRIPT
    from fedactors.report.style import css
    from fedactors.report.template import PAGE

    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(PAGE)
    drawn = [chart for section in page.sections for chart in section.charts]
    return template.render(
        {field.name: getattr(page, field.name) for field in fields(page)},
        css=Markup(css()),
        script=Markup(SCRIPT),
        library=Markup(_library()) if drawn else "",
        data=Markup(_data(drawn)) if drawn else "",
        foot=f"Written by fedactors {__version__} from {page.source}.",
    )


def _library() -> str:
    from bokeh.resources import Resources

    return "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw)


def _data(charts: list[Chart]) -> str:
    """Return the charts as JSON that cannot end the element it stands in."""
    from bokeh.core.types import ID
    from bokeh.embed import json_item

    items = [json_item(chart.model, ID(chart.key)) for chart in charts]
    text = json.dumps({"items": items, "themes": THEMES}, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
