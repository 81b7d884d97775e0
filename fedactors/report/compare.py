"""Several runs on one page: their figures side by side, their curves in one frame."""

from __future__ import annotations

from collections.abc import Sequence

from fedactors.metric_names import VALIDATION
from fedactors.report import curves
from fedactors.report.figure import share
from fedactors.report.html_page import Page, Section
from fedactors.report.measures import BEST_ROUND, HEARD_NAMES, at_end, totals, virtual_span
from fedactors.report.page_sections import PageTable, TableCell, ended, moved, parts, wall_seconds, warnings
from fedactors.report.palette import DASHES, OUTCOME, RUNS, label, run_line
from fedactors.report.progress_axes import axes
from fedactors.report.terminal_text import size, span
from fedactors.report.variant_names import in_words, told_apart
from fedactors.run_files.files import SCENARIO, yaml_of
from fedactors.run_files.records import Records

_CURVES = len(DASHES) * len(RUNS)  # colours times kinds of line


def compared(runs: Sequence[Records], window: int | None = None) -> Page:
    """Return the page that compares `runs`, by means over the last `window` rounds or the last tenth of them."""
    names = named(runs)
    shown = runs[:_CURVES]
    sections = [
        Section("figures", "Side by side", (), (_figures(runs, names, window),)),
        Section("learning", "Learning", tuple(curves.learning(shown, names)), (), "two", tuple(axes(shown))),
        Section("participation", "Participation", (), (_outcomes(runs, names),), "", (), _chips(runs)),
    ]
    return Page(
        title=_title(runs),
        kind="comparison",
        lead=_lead(runs),
        answer=_answer(runs, names, window),
        sections=[section for section in sections if section.charts or section.tables],
        warnings=[f"{name}: {line}" for name, records in zip(names, runs, strict=True) for line in warnings(records)],
    )


def _title(runs: Sequence[Records]) -> str:
    """Return how many runs are compared, and of which scenario if all have its name."""
    names = {records.name for records in runs}
    said = f"{len(runs)} runs compared"
    return f"{names.pop()}: {said}" if len(names) == 1 else said


def _chips(runs: Sequence[Records]) -> tuple[dict[str, str], ...]:
    """Return the legend of the outcomes that occur in any of the runs."""
    happened = {name for records in runs for name, count in totals(records).items() if count}
    return tuple({"said": label(name), "color": color} for name, color in OUTCOME.items() if name in happened)


def named(runs: Sequence[Records]) -> list[str]:
    """Return a name for each run: that of its scenario if no other has it, else what differs between those that do."""
    alike = {one.name: [other for other in runs if other.name == one.name] for one in runs}
    apart = {name: iter(_apart(some)) for name, some in alike.items()}
    names = [_called(one.name, next(apart[one.name]), alone=len(alike) == 1) for one in runs]
    return [
        f"{name} ({records.path})" if names.count(name) > 1 else name for name, records in zip(names, runs, strict=True)
    ]


def _called(name: str, said: str, *, alone: bool) -> str:
    """Return the name of a run of which something is said, which is enough where all runs have one name."""
    return said or name if alone else f"{name} {said}".rstrip()


def _apart(runs: Sequence[Records]) -> list[str]:
    """Return in words the settings by which runs of one name are told apart; of equal ones, nothing."""
    scenarios = [yaml_of(one.path / SCENARIO, one.scenario) for one in runs]
    return [in_words(one) for one in told_apart(scenarios)]


def _lead(runs: Sequence[Records]) -> str:
    plans = {records.summary.get("digests", {}).get("plans") for records in runs}
    if len(plans) == 1 and None not in plans:
        return "All runs faced the very same devices, seconds and cut-offs: their plans have one digest."
    return "The runs did not face the same events: their plans differ."


def _answer(runs: Sequence[Records], names: Sequence[str], window: int | None) -> str:
    """Return which run has the highest accuracy, and which the next; nothing if fewer than two were evaluated.

    Where all runs have samples for validation it is the accuracy on these.
    """
    validated = all(records.validated for records in runs)
    column, of = (f"{VALIDATION}accuracy", "validation accuracy") if validated else ("accuracy", "accuracy")
    ends = {name: at_end(records, column, window) for name, records in zip(names, runs, strict=True)}
    known = {name: value for name, value in ends.items() if value is not None}
    if len(known) < 2:
        return ""
    best, second = sorted(known, key=lambda name: known[name], reverse=True)[:2]
    return (
        f"{best} has the highest {of}, {known[best]:.2%}, {100 * (known[best] - known[second]):.2f} points above"
        f" {second}; {averaged(window)}. Single runs tell no interval: `fedactors compare` runs several seeds of each."
    )


def averaged(window: int | None) -> str:
    """Return over which rounds accuracies and losses are means."""
    if window is None:
        return "means over the last tenth of the rounds"
    if window == BEST_ROUND:
        return "of each run's best round by its samples for validation"
    return "of the last round" if window == 1 else f"means over the last {window:,} rounds"


def _figures(runs: Sequence[Records], names: Sequence[str], window: int | None) -> PageTable:
    rows = tuple(
        _row(records, names[k], run_line(k) if k < _CURVES else ("", ""), window) for k, records in enumerate(runs)
    )
    heads = ("run", "accuracy", "loss", "rounds", "virtual time", "wall time", "traffic", "ended because", "folder")
    note = f"Accuracy and loss: {averaged(window)}."
    note += f" The first {_CURVES} runs are drawn below." if len(runs) > _CURVES else ""
    return PageTable(heads, rows, (1, 2, 3, 4, 5, 6), "", note)


def _row(records: Records, name: str, line: tuple[str, str], window: int | None) -> tuple[TableCell, ...]:
    wall = wall_seconds(records)
    accuracy, loss = (at_end(records, column, window) for column in ("accuracy", "loss"))
    texts = (
        "–" if accuracy is None else f"{accuracy:.2%}",  # noqa: RUF001
        "–" if loss is None else f"{loss:.4f}",  # noqa: RUF001
        f"{records.rounds:,}",
        span(virtual_span(records)),
        span(wall) if wall == wall else "–",  # noqa: RUF001
        size(sum(moved(records))),
        ended(records),
        str(records.path),
    )
    color, dash = line
    return (TableCell(name, color, dash=dash), *map(TableCell, texts))


def _outcomes(runs: Sequence[Records], names: Sequence[str]) -> PageTable:
    rows = tuple(_bar(records, name) for records, name in zip(runs, names, strict=True))
    return PageTable(("run", "asked", "heard", "outcomes"), rows, (1, 2))


def _bar(records: Records, name: str) -> tuple[TableCell, ...]:
    counts = totals(records)
    asked, heard = sum(counts.values()), sum(counts[name] for name in HEARD_NAMES)
    return (TableCell(name), TableCell(f"{asked:,}"), TableCell(share(heard, asked)), TableCell(parts=parts(counts)))
