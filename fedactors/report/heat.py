"""A heat map: a value for each pair of settings, written into its cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fedactors.report.figure import FONT, Chart, blank, hover
from fedactors.report.measures import Floats

# cold to warm, dark to light: read without colours, too
SHADES = ("#16324f", "#1f5673", "#2a7f8f", "#45a68f", "#8cc28a", "#d3d98f", "#f7efb2")


def heat(
    key: str, title: str, names: tuple[str, str], ticks: tuple[Sequence[str], Sequence[str]], values: Floats,
    limits: tuple[float, float], show: Callable[[float], str],
) -> Chart:  # fmt: skip
    """Return the map of `values` (rows of the second setting, columns of the first); NaN leaves a cell empty.

    `limits` are the values of the darkest and the lightest shade: maps that are compared share them.
    """
    from bokeh.core.properties import value
    from bokeh.models import ColumnDataSource, LinearColorMapper
    from bokeh.models.annotations import ColorBar

    across, up = ticks
    made = blank(90 + 46 * len(up), names[0], names[1], x_range=list(across), y_range=list(up))
    made.ygrid.grid_line_color = None
    rows, columns = (index.ravel() for index in np.indices(values.shape))
    flat = values.ravel()
    low, high = limits
    light = (flat - low) > 0.55 * (high - low)
    data = {
        "x": [across[k] for k in columns], "y": [up[k] for k in rows], "value": flat,
        "text": [show(value) if np.isfinite(value) else "–" for value in flat],  # noqa: RUF001
        "ink": np.where(np.isfinite(flat) & ~light, "#ffffff", "#1b2127"),
    }  # fmt: skip
    source = ColumnDataSource(data)
    mapper = LinearColorMapper(palette=list(SHADES), low=low, high=high if high > low else low + 1, nan_color="#bdb3a4")
    cells = made.rect(
        "x", "y", 0.98, 0.96, source=source, line_color=None, fill_color={"field": "value", "transform": mapper}
    )
    look = {"text_align": "center", "text_baseline": "middle", "text_font": value(FONT), "text_font_size": "12px"}
    made.text("x", "y", text="text", text_color="ink", source=source, **look)
    made.add_tools(hover([(names[0], "@x"), (names[1], "@y"), ("", "@text")], [cells]))
    bar = ColorBar(color_mapper=mapper, width=12, background_fill_color=None, major_label_text_font=FONT)
    made.add_layout(bar, "right")
    said = f"{title}, by {names[0]} and {names[1]}."
    if np.isfinite(values).any():
        y, x = (int(k) for k in np.unravel_index(np.nanargmax(values), values.shape))
        said += f" Highest: {show(values[y, x])} at {across[x]}, {up[y]}."
    return Chart(key, title, "", made, said)
