"""The matrix of all experiments of the papers: what a campaign found of each, as text and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.papers import catalogue
from fedactors.papers.campaign.campaign_file import distinct
from fedactors.papers.campaign.campaign_runs import duration
from fedactors.papers.experiment import Experiment
from fedactors.papers.verdicts import ClaimVerdict
from fedactors.plain_text import aligned
from fedactors.run_files.files import damaged, object_of
from fedactors.version import ENGINE

SIZES = {"full": catalogue.FULL, "reduced": catalogue.REDUCED}
_SHOWN = frozenset(
    (
        "note",
        "seeds",
        "seeds_wanted",
        "cells",
        "cells_wanted",
        "engines",
        "uncommitted",
        "wall_seconds",
        "why",
        "claims",
    )
)
_WIDEST = 60  # characters of a title
HEADS = ("experiment", "what", "verdicts", "seeds", "cells", "cost", "engine")
NUMBER_HEADS = ("experiment", "number", "paper", "ours", "verdict")
_SHORT = {ClaimVerdict.HOLDS: "hold", ClaimVerdict.FAILS: "fail", ClaimVerdict.NOT_LEARNT: "not learnt"}
_SHORT[ClaimVerdict.TOO_CLOSE] = "too close"


class MatrixRow(NamedTuple):
    """An experiment, and what is known of it; `found` is empty if it was not run."""

    name: str
    others: Sequence[str]  # further names
    size: str
    experiment: Experiment
    found: Mapping[str, Any]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the matrix, as text."""
        found = self.found
        title = self.experiment.title
        if not found:
            return (self.name, title, "not run", "-", "-", "-", "-")
        seeds = f"{len(found['seeds'])} of {len(found['seeds_wanted'])}"
        done = f"{found['cells']} of {found['cells_wanted']}"
        cost = duration(found["wall_seconds"])
        return (self.name, title, self.verdicts, seeds, done, cost, self.engines)

    @property
    def verdicts(self) -> str:
        """How many asserted claims have each verdict."""
        counts = Counter(claim["verdict"] for claim in self.found["claims"] if claim["asserted"])
        said = [f"{counts[one.value]} {_SHORT[one]}" for one in ClaimVerdict if counts[one.value]]
        if not said:
            return self.found["why"] or ("reported only" if self.found["claims"] else "unfinished")
        return ", ".join(said)

    @property
    def note(self) -> str:
        """How it differs from the paper's, and whether its code is in a commit; nothing if it was not run."""
        if not self.found:
            return ""
        changed = self.found["uncommitted"]
        said = f"{changed} of {self.found['cells']} cells were computed by code with changes that are in no commit"
        return "; ".join(part for part in (self.found["note"], said if changed else "") if part)

    @property
    def engines(self) -> str:
        """The engine's versions, with a mark if they are not that of now."""
        engines = ", ".join(self.found["engines"])
        return engines if engines == ENGINE else f"{engines} (now {ENGINE})"

    @property
    def finished(self) -> bool:
        """Whether every cell has a result."""
        return bool(self.found) and self.found["cells"] == self.found["cells_wanted"]


def rows(results: Path) -> list[MatrixRow]:
    """Return the rows of all experiments: full size first. Raises RunFolderError if a result is damaged."""
    return [
        MatrixRow(name, others, size, experiments[name], _found(results / size / f"{name}.json"))
        for size, experiments in SIZES.items()
        for name, others in distinct(experiments).items()
    ]


def _found(path: Path) -> dict[str, Any]:
    found = object_of(path) if path.exists() else {}
    if found and (missing := sorted(_SHOWN - found.keys())):
        accepted = "what a campaign writes; `fedactors reproduce --campaign FILE --budget 0s` writes it anew"
        raise damaged(path, f"no {', '.join(missing)}", accepted)
    return found


def printed_numbers(row: MatrixRow) -> Iterator[tuple[str, str, str, str]]:
    """Yield, for each number that the paper prints: the claim, the paper's number, ours with its interval, verdict."""
    for claim in row.found.get("claims", ()):
        if claim.get("paper") is not None:
            yield claim["text"], f"{claim['paper']:g}", _interval(claim["found"]), claim["verdict"]


def _interval(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "-"
    return f"{found['mean']:.4g}" + (f" ± {found['half']:.2g}" if found["half"] is not None else "")


def text(rows: Sequence[MatrixRow]) -> list[str]:
    """Return the matrix as lines for a terminal."""
    lines = [line for size in SIZES for line in _part(size, [row for row in rows if row.size == size])]
    numbers = [(row.name, *number) for row in rows for number in printed_numbers(row)]
    if numbers:
        lines += ["Numbers that papers print", *_table([NUMBER_HEADS, *numbers])]
    return lines


def _part(size: str, rows: Sequence[MatrixRow]) -> list[str]:
    if not rows:
        return []
    notes = [f"{row.name}: {row.note}" for row in rows if row.note]
    return [_heading(size, rows), *_table([HEADS, *(row.cells for row in rows)]), *notes, ""]


def data(rows: Sequence[MatrixRow]) -> list[dict[str, Any]]:
    """Return the matrix as plain data."""
    return [
        {"name": row.name, "others": list(row.others), "size": row.size, "finished": row.finished, "found": row.found}
        for row in rows
    ]


def _heading(size: str, rows: Sequence[MatrixRow]) -> str:
    said = {"full": "Full size", "reduced": "Reduced"}[size]
    return f"{said}: {sum(row.finished for row in rows)} of {len(rows)} experiments run to their end"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return lines of equal columns, of which the second is cut where it is long."""
    return aligned([(first, _cut(second), *others) for first, second, *others in rows], left=None)


def _cut(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else cell[: _WIDEST - 1] + "…"
