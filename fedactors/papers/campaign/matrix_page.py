"""The matrix as a part of a Markdown page, between two lines that mark it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fedactors.errors import ScenarioError
from fedactors.papers.campaign.matrix import HEADS, NUMBER_HEADS, SIZES, MatrixRow, printed_numbers
from fedactors.run_files.files import text_of
from fedactors.run_files.writing import write

BEGIN = "<!-- matrix: written by fedactors reproduce -->"
END = "<!-- end of the matrix -->"
_TITLES = {"full": "At the papers' size", "reduced": "Reduced"}


def update(page: Path, rows: Sequence[MatrixRow]) -> None:
    """Write the matrix between the two lines of a page. Raises ScenarioError if the page lacks them."""
    before = text_of(page)
    now = updated(before, rows, str(page))
    if now != before:
        write(page, now)


def refuse_unmarked(page: Path) -> None:
    """Raise ScenarioError if a page has no place for the matrix, RunFolderError if it cannot be read."""
    updated(text_of(page), [], str(page))


def updated(page: str, rows: Sequence[MatrixRow], source: str) -> str:
    """Return the text of a page with the matrix of now. Raises ScenarioError if it lacks the lines that mark it."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ScenarioError(f'{source}: no place for the matrix (accepted: the lines "{BEGIN}" and "{END}")')
    return f"{head}{BEGIN}\n\n{markdown(rows)}\n{END}{tail}"


def markdown(rows: Sequence[MatrixRow]) -> str:
    """Return the matrix, and claim by claim what was found."""
    return "\n".join(line for size in SIZES for line in _section(size, [row for row in rows if row.size == size]))


def _section(size: str, rows: Sequence[MatrixRow]) -> Iterator[str]:
    finished = sum(row.finished for row in rows)
    yield f"## {_TITLES[size]}: {finished} of {len(rows)} experiments run to their end"
    yield ""
    yield from _table(HEADS, [(f"`{row.name}`", *row.cells[1:]) for row in rows])
    yield ""
    if notes := [f"* `{row.name}`: {row.note}." for row in rows if row.note]:
        yield from (*notes, "")
    if numbers := [(f"`{row.name}`", *number) for row in rows for number in printed_numbers(row)]:
        yield from (f"### Numbers that papers print ({_TITLES[size].lower()})", "")
        yield from (*_table(NUMBER_HEADS, numbers), "")
    for row in rows:
        yield from _claims(row)


def _claims(row: MatrixRow) -> Iterator[str]:
    claims = row.found.get("claims", ())
    if not claims:
        return
    yield f"### `{row.name}`{' (reduced)' if row.size == 'reduced' else ''}"
    yield ""
    if row.experiment.reported:
        yield f"Paper: {row.experiment.reported}."
        yield ""
    shown = [
        (claim["text"], claim["ours"], claim["verdict"] if claim["asserted"] else f"({claim['verdict']})")
        for claim in claims
    ]
    yield from _table(("claim", "here", "verdict"), shown)
    yield ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (heads, ["---"] * len(heads), *rows):
        yield "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
