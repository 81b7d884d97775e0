"""The words and tables of a report: headline, outcomes, groups, faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedactors.metric_names import VALIDATION
from fedactors.report.figure import share
from fedactors.report.measures import HEARD_NAMES, GroupShare, by_group, totals, virtual_span
from fedactors.report.palette import MEANING, OUTCOME, label
from fedactors.report.terminal_text import size, span
from fedactors.run_files.records import Records

_GROUPS = 50
_FAULTS = 100
_FAULT_TEXT = 600
_SCENARIO_CHARACTERS = 100_000


@dataclass(frozen=True)
class Card:
    """One figure of the headline."""

    name: str
    value: str
    small: str = ""


@dataclass(frozen=True)
class Part:
    """One piece of a bar inside a table."""

    width: float  # percent
    color: str
    said: str


@dataclass(frozen=True)
class TableCell:
    """What stands in one place of a table: text, a patch of colour before it, a bar of parts above it.

    A patch of the colour of a line may have its `dash`, "dashed" or "dotted".
    """

    text: str = ""
    color: str = ""
    parts: tuple[Part, ...] = ()
    dash: str = ""

    @property
    def said(self) -> str:
        """The bar in words."""
        return "; ".join(part.said for part in self.parts)


@dataclass(frozen=True)
class PageTable:
    """A table; `numbers` are the columns set flush right."""

    heads: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    numbers: tuple[int, ...] = ()
    title: str = ""
    note: str = ""


def finals(records: Records) -> dict[str, float]:
    """Return the last accuracy and loss that are known, and what else the scenario measures."""
    names = ("accuracy", "loss", f"{VALIDATION}accuracy", f"{VALIDATION}loss", *records.measures)
    written = records.summary.get("final")
    if isinstance(written, dict):
        return {name: float(written[name]) for name in names if written.get(name) is not None}
    found = {name: records.metrics[name] for name in names}
    finite = {name: values[np.isfinite(values)] for name, values in found.items()}
    return {name: float(values[-1]) for name, values in finite.items() if len(values)}


def wall_seconds(records: Records) -> float:
    """Return the wall time of a run; NaN if it is not known."""
    known = records.metrics["wall_seconds"]
    known = known[np.isfinite(known)]
    return float(records.summary.get("wall_seconds", known[-1] if len(known) else float("nan")))


def moved(records: Records) -> tuple[float, float]:
    """Return (bytes down, bytes up)."""
    written = records.summary.get("bytes")
    if isinstance(written, dict):
        return float(written.get("down") or 0), float(written.get("up") or 0)
    return float(np.nansum(records.metrics["bytes_down"])), float(np.nansum(records.metrics["bytes_up"]))


def ended(records: Records) -> str:
    """Return why the run ended."""
    return str(records.summary.get("ended_because", "interrupted before a summary was written"))


def lead(records: Records) -> str:
    """Return the sentence below the name."""
    devices = f"{records.devices:,} devices, " if records.devices else ""
    seed = f", seed {records.summary['seed']}" if "seed" in records.summary else ""
    wall = wall_seconds(records)
    computed = f", computed in {span(wall)}" if wall == wall else ""
    virtual = span(virtual_span(records))
    what = f"{devices}{records.rounds:,} rounds{seed}: {virtual} of virtual time{computed}"
    notes = "".join(f" {note[:1].upper()}{note[1:]}." for note in _notes(records))
    return f"{what}. Ended because: {ended(records)}.{notes}"


def _notes(records: Records) -> list[str]:
    """Return sentences on what settings of the scenario mean together, and on what the run turned out to be."""
    lists = [records.summary.get(key) for key in ("notes", "remarks")]
    return [note for notes in lists if isinstance(notes, list) for note in notes if isinstance(note, str)]


def _validated(learned: Mapping[str, float]) -> list[Card]:
    """Return the figure of the samples for validation, where there are some: the accuracy, or else the loss."""
    if (accuracy := learned.get(f"{VALIDATION}accuracy")) is not None:
        return [Card("Validation accuracy", f"{accuracy:.1%}", "of samples put aside")]
    loss = learned.get(f"{VALIDATION}loss")
    return [] if loss is None else [Card("Validation loss", f"{loss:.3f}", "on samples put aside")]


def cards(records: Records) -> list[Card]:
    """Return the figures of the headline."""
    learned, counts = finals(records), totals(records)
    asked, heard = sum(counts.values()), sum(counts[name] for name in HEARD_NAMES)
    down, up = moved(records)
    wall, virtual = wall_seconds(records), virtual_span(records)
    found = [Card("Final accuracy", f"{learned['accuracy']:.1%}", "of the test set")] if "accuracy" in learned else []
    found += [Card("Final loss", f"{learned['loss']:.3f}", "on the test set")] if "loss" in learned else []
    found += _validated(learned)
    for name in records.measures:
        if name in learned:
            found.append(Card(f"Final {name.replace('_', ' ')}", f"{learned[name]:.3f}", "on the test set"))
    found.append(Card("Virtual time", span(virtual), f"{records.rounds:,} rounds"))
    if wall == wall:
        faster = f"{virtual / wall:,.0f} times real time" if wall and virtual > wall else "on this machine"
        found.append(Card("Wall time", span(wall), faster))
    found.append(Card("Heard", share(heard, asked), f"{heard:,} of {asked:,} asked"))
    found.append(Card("Traffic", size(down + up), f"{_whole(size(down))} down, {_whole(size(up))} up"))
    return found


def parts(counts: Mapping[str, int]) -> tuple[Part, ...]:
    """Return a bar of the outcomes that happened."""
    asked = sum(counts.values())
    return tuple(
        Part(round(100 * count / asked, 2), OUTCOME[name], f"{label(name)} {share(count, asked)}")
        for name, count in counts.items()
        if count
    )


def _whole(text: str) -> str:
    """Keep a number and its unit on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def outcomes(records: Records) -> PageTable:
    """Return the totals by outcome."""
    counts = totals(records)
    asked = sum(counts.values())
    rows = [
        (
            TableCell(label(name), OUTCOME[name]),
            TableCell(f"{count:,}"),
            TableCell(share(count, asked)),
            TableCell(MEANING[name]),
        )
        for name, count in counts.items()
        if count
    ]
    total = (
        TableCell("asked", "transparent"),
        TableCell(f"{asked:,}"),
        TableCell(),
        TableCell("the sum, checked every round"),
    )
    return PageTable(("outcome", "clients", "share", "what it means"), (*rows, total), (1, 2), "What became of them")


def groups(records: Records) -> PageTable | None:
    """Return a row per group of devices; none if there are no groups or no orders."""
    shares = by_group(records) if len(records.orders["client"]) and len(records.groups) <= _GROUPS else []
    if not shares:
        return None
    steps = sum(group.steps for group in shares)
    rows = tuple(_group(group, steps) for group in shares)
    heads = ("group", "devices", "never heard", "asked", "heard", "steps given", "outcomes")
    return PageTable(heads, rows, (1, 2, 3, 4, 5))


def _group(group: GroupShare, steps: int) -> tuple[TableCell, ...]:
    figures = (f"{group.devices:,}", f"{group.never_heard:,}", f"{group.asked:,}", share(group.heard, group.asked))
    return (
        TableCell(group.name),
        *map(TableCell, figures),
        TableCell(share(group.steps, steps)),
        TableCell(parts=parts(group.outcomes)),
    )


def faults(records: Records) -> PageTable | None:
    """Return the real faults that were met and mended; none if there were none."""
    if not records.faults:
        return None
    shown = records.faults[:_FAULTS]
    rows = tuple(
        (
            TableCell(str(fault.get("round", ""))),
            TableCell(str(fault.get("cause", ""))[:_FAULT_TEXT]),
            TableCell("yes" if fault.get("died") else "no"),
            TableCell(_short(str(fault.get("text", "")))),
        )
        for fault in shown
    )
    note = f"The first {len(shown):,} of {len(records.faults):,}." if len(shown) < len(records.faults) else ""
    return PageTable(("round", "cause", "actor died", "what is known"), rows, (0,), "", note)


def _short(text: str) -> str:
    return text if len(text) <= _FAULT_TEXT else text[:_FAULT_TEXT] + " …"


def warnings(records: Records) -> list[str]:
    """Return what a reader has to know about the records."""
    missing, plans = ", ".join(records.missing), records.summary.get("plans", records.rounds)
    found = [f"This run was interrupted: {missing} was never completed. Shown is what is there."] if missing else []
    if plans != records.rounds:
        found.append(f"Damaged: metrics.jsonl has {records.rounds:,} rounds, and summary.json counts {plans}.")
    return found


def digests(records: Records) -> list[tuple[str, Any]]:
    """Return the digests of the run."""
    found = records.summary.get("digests")
    return list(found.items()) if isinstance(found, dict) else []


def scenario_shown(records: Records) -> str:
    """Return the resolved scenario, cut where it is longer than a page should hold."""
    text = records.scenario
    return text if len(text) <= _SCENARIO_CHARACTERS else text[:_SCENARIO_CHARACTERS] + "\n… cut here"
