"""A page as one HTML file that holds everything it needs: it opens offline and loads nothing from the network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fedactors.report.figure import Chart
from fedactors.report.page.script import script
from fedactors.report.page.style import css
from fedactors.report.page.template import PAGE
from fedactors.report.page_sections import Card, PageTable, Part
from fedactors.report.palette import THEMES
from fedactors.report.progress_axes import ProgressAxis
from fedactors.run_files.writing import write_page
from fedactors.version import VERSION


@dataclass(frozen=True)
class Section:
    """A part of the page: charts and tables side by side."""

    key: str
    title: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[PageTable, ...] = ()
    layout: str = ""
    axes: tuple[ProgressAxis, ...] = ()
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
    progress: Mapping[str, Sequence[float]] | None = None  # of one run: what ties axes of different kinds
    answer: str = ""  # to the question of a study, in a sentence or two
    source: str = "the records of the run folder alone"


def save(page: Page, path: Path) -> Path:
    """Render a page into a file that appears whole or not at all."""
    return write_page(path, render(page))


def render(page: Page) -> str:
    """Return the page as HTML."""
    from jinja2 import Environment
    from markupsafe import Markup

    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(PAGE)
    drawn = [chart for section in page.sections for chart in section.charts]
    return template.render(
        {field.name: getattr(page, field.name) for field in fields(page)},
        css=Markup(css()),
        script=Markup(script()),
        library=Markup(_library()) if drawn else "",
        data=Markup(_data(drawn, page.progress)) if drawn else "",
        foot=f"Written by fedactors {VERSION} from {page.source}.",
    )


def _library() -> str:
    from bokeh.resources import Resources

    return "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw)


def _data(charts: list[Chart], progress: Mapping[str, Sequence[float]] | None) -> str:
    """Return the charts as JSON that cannot end the element it stands in."""
    from bokeh.core.types import ID
    from bokeh.embed import json_item

    items = [json_item(chart.model, ID(chart.key)) for chart in charts if chart.model is not None]
    timeline = next((chart.data for chart in charts if chart.data is not None), None)
    shown = {"items": items, "themes": THEMES, "progress": progress, "timeline": timeline}
    text = json.dumps(shown, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
