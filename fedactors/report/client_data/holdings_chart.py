"""Who holds what, as a file: a page with charts, or the picture of the terminal as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedactors.report.client_data.holdings_text import bars, lines, picture
from fedactors.report.figure import Chart, blank, hover
from fedactors.report.heat import heat
from fedactors.report.html_page import Page, Section, save
from fedactors.report.palette import RUNS
from fedactors.run_files.writing import write_page

Figures = Mapping[str, Any]

# as rich's own, without fonts that would be asked of the network
_SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px;
  font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""


def write(figures: Figures, path: Path) -> Path:
    """Write a page with the charts to `path`. Raises RunFolderError if it cannot be written."""
    said = lines(figures)
    sections = [Section("holdings", "Who holds what", (_cells(figures),))] if figures["labels"] else []
    sections.append(Section("sizes", "Clients by samples", (_sizes(figures),)))
    lead = ". ".join(" ".join(line.split()) for line in said[1:])
    page = Page(said[0], "data", f"{lead}.", sections, source="the data of the scenario")
    return save(page, path)


def write_svg(figures: Figures, path: Path) -> Path:
    """Write the picture of the terminal to `path`. Raises RunFolderError if it cannot be written."""
    from io import StringIO

    from rich.console import Console

    console = Console(file=StringIO(), record=True, width=160, highlight=False)
    console.print(picture(figures))
    return write_page(path, console.export_svg(title=figures["name"], code_format=_SVG, unique_id="holdings"))


def _cells(figures: Figures) -> Chart:
    counts = np.array(figures["counts"], dtype=float)
    clients = figures["client_names"] or [str(client) for client in range(len(counts))]
    ticks = (_unlike(figures["labels"]), _unlike(clients))
    limits = (0.0, float(counts.max(initial=1)))
    return heat("holdings", "Who holds what", ("label", "client"), ticks, counts, limits, lambda n: f"{n:,.0f}")


def _sizes(figures: Figures) -> Chart:
    from bokeh.models import ColumnDataSource

    found = bars(figures["sizes"])
    names = [f"{low:,}" if low == high else f"{low:,}-{high:,}" for low, high, _, _ in found]
    made = blank(260, "samples", "clients", x_range=names)
    source = ColumnDataSource({"samples": names, "clients": [count for _, _, count, _ in found]})
    drawn = made.vbar("samples", 0.9, "clients", color=RUNS[0], source=source)
    made.add_tools(hover([("samples", "@samples"), ("clients", "@clients")], [drawn]))
    said = f"Clients by samples, from {figures['smallest']:,} to {figures['largest']:,}."
    return Chart("sizes", "Clients by samples", "", made, said)


def _unlike(names: list[str]) -> list[str]:
    """Return names of which no two are the same, as an axis needs them."""
    return names if len(set(names)) == len(names) else [f"{name} ({place})" for place, name in enumerate(names)]
