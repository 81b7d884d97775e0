"""Texts for a person: tables in columns that are aligned, and names as a part of a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], left: int | None = 1) -> list[str]:
    """Return rows of cells as lines of text, the first `left` columns flush left (all with None), the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    flush_left = len(widths) if left is None else left
    return [
        "  ".join(
            cell.ljust(width) if k < flush_left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def listed(names: Sequence[str]) -> str:
    """Return names as a part of a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
