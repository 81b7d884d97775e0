"""Who holds what, as a picture in the terminal: clients by labels as shaded cells, and a histogram of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedactors.report.heat import SHADES

Figures = Mapping[str, Any]

_SHADED = " ░▒▓█"
_COLUMNS = 30  # labels that are drawn one by one
_BARS = 10
_WIDTH = 40


def lines(figures: Figures) -> list[str]:
    """Return the words above the picture."""
    inputs = ", ".join(
        f"{one['name'] or 'input'} {_shape(one['shape'])}{' of identifiers' if one['integer'] else ''}"
        for one in figures["inputs"]
    )
    mixed = []
    if figures["labels_per_client"] is not None:
        mixed = [
            f"  labels     {len(figures['labels'])}; a client holds {figures['labels_per_client']:.1f} of them,"
            f" and its shares differ from all clients' by {figures['label_distance']:.0%}"
        ]
    aside = f", {figures['validation']:,} for validation" if "validation" in figures else ""
    without = f"; {figures['without']:,} hold none" if figures["without"] else ""
    return [
        f"{figures['name']}: {figures['dataset']}, partition {figures['partition']}",
        f"  samples    {figures['train']:,} to train, {figures['test']:,} to test{aside}; {_kind(figures['kind'])}",
        f"  sample     {inputs or _shape(figures['input_shape'])}",
        f"  clients    {figures['clients']:,} with {figures['held']:,} samples; {figures['smallest']:,} to"
        f" {figures['largest']:,}, median {figures['median']:,.0f}{without}",
        *mixed,
        *(f"  attackers  {name} learn from other labels than these" for name in figures["attackers"]),
    ]


def picture(figures: Figures) -> Any:
    """Return all of it for rich."""
    from rich.console import Group
    from rich.text import Text

    parts = [Text("\n".join(lines(figures))), Text("")]
    if figures["labels"]:
        parts += [cells(figures), Text("")]
    return Group(*parts, histogram(figures["sizes"]))


def cells(figures: Figures) -> Any:
    """Return the table of clients and labels; the darker or fuller a cell, the more samples of that label."""
    from rich.table import Table
    from rich.text import Text

    names, counts = _grouped(figures["labels"], np.array(figures["counts"], dtype=np.int64))
    most = max(1, int(counts.max(initial=0)))
    table = Table(box=None, padding=(0, 1 if len(names) <= 15 else 0), pad_edge=False, show_footer=False)
    table.add_column("client", justify="right", no_wrap=True)
    for name in names:
        table.add_column(Text(name[:8]), justify="center", no_wrap=True)
    table.add_column("samples", justify="right", no_wrap=True)
    sizes, called = figures["sizes"], figures["client_names"]
    for client, row in enumerate(counts):
        shown = [Text(_cell(count, most), style=_style(count, most)) for count in row.tolist()]
        table.add_row(Text(called[client][:16] if called else str(client)), *shown, f"{sizes[client]:,}")
    left = figures["clients"] - len(counts)
    table.caption = f"a full cell: {most:,} samples" + (f"; {left:,} more clients are not shown" if left else "")
    table.caption_justify = "left"
    return table


def histogram(sizes: Sequence[int]) -> Any:
    """Return how many clients hold how many samples, as bars."""
    from rich.text import Text

    rows = ["clients by samples"]
    for low, high, count, share in bars(sizes):
        said = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        rows.append(f"  {said:>20}  {'█' * round(share * _WIDTH)}{'' if round(share * _WIDTH) else '▏'} {count:,}")
    return Text("\n".join(rows))


def bars(sizes: Sequence[int]) -> list[tuple[int, int, int, float]]:
    """Return (fewest samples, most samples, clients, share of the longest bar) of each bar of the histogram."""
    found = np.array(sizes, dtype=np.int64)
    low, high = int(found.min()), int(found.max())
    count = min(_BARS, high - low + 1)
    edges = low + (np.arange(count + 1) * (high - low + 1)) // count
    counts = np.histogram(found, edges)[0].tolist()
    longest = max(counts)
    return [
        (int(first), int(last) - 1, number, number / longest)
        for first, last, number in zip(edges[:-1], edges[1:], counts, strict=True)
    ]


def _grouped(names: Sequence[str], counts: Any) -> tuple[list[str], Any]:
    """Return labels and counts, several labels together where there are too many for a screen."""
    if len(names) <= _COLUMNS:
        return list(names), counts
    bounds = np.linspace(0, len(names), _COLUMNS + 1).astype(int)
    together = np.add.reduceat(counts, bounds[:-1], axis=1)
    return [names[first] for first in bounds[:-1]], together


def _cell(count: int, most: int) -> str:
    level = -(-count * (len(_SHADED) - 1) // most)
    return _SHADED[level] * 3


def _style(count: int, most: int) -> str:
    return SHADES[min(len(SHADES) - 1, 1 + round(count / most * (len(SHADES) - 2)))] if count else ""


def _shape(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def _kind(kind: str) -> str:
    return {
        "class": "labels are classes",
        "value": "labels are values",
        "sequence": "labels are the next tokens",
        "multi-label": "labels are several answers",
    }[kind]
