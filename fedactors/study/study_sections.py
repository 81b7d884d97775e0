"""What stands on the page of a study besides figures: what became of the clients asked, and which settings differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import mean
from typing import Any

from fedactors.plan import Outcome
from fedactors.report.html_page import Section
from fedactors.report.measures import GroupShare, by_group
from fedactors.report.page_sections import PageTable, Part, TableCell, scenario_shown
from fedactors.report.palette import OUTCOME, label
from fedactors.report.variant_names import flat, variant_of
from fedactors.run_files.records import read
from fedactors.study.incompleteness import ALWAYS, NOTE, places
from fedactors.study.run_figures import StudyRow

_MOST_LINES = 400  # of a table
_MOST_GROUPS = 50
_MOST_ORDERS = 10_000_000  # of all runs, read to tell groups apart
_LONGEST = 120  # characters of a setting


def participation(rows: Sequence[StudyRow]) -> list[Section]:
    """Return what became of the clients asked, by variant, and by group where there are several."""
    found = places(rows)
    if not found:
        return []
    shown = [one for one in Outcome if one in ALWAYS or any(place.shares[one] for place in found)]
    axes = list(rows[0].labels)
    lines = tuple(
        (
            TableCell(variant_of(dict(zip(axes, place.at, strict=True)))),
            TableCell(f"{place.rounds:,.0f}"),
            TableCell(f"{place.asked:,.0f}"),
            *_shares(place.shares, shown),
            TableCell(f"{place.heard:.1%}"),
            TableCell(f"{place.gini:.2f}"),
            TableCell(parts=_bar(place.shares)),
        )
        for place in found[:_MOST_LINES]
    )
    heads = ("variant", "rounds", "asked", *map(_word, shown), "devices heard", "Gini", "outcomes")
    table = PageTable(heads, lines, tuple(range(1, len(heads) - 1)), "", NOTE + _cut(len(found)))
    legend = tuple({"said": _word(one), "color": OUTCOME[one.value]} for one in Outcome if _occurs(one, found))
    sections = [Section("participation", "What became of those asked", (), (table,), "", (), legend)]
    groups = _of_groups(rows, shown)
    return [*sections, *([Section("groups", "Groups of devices", (), (groups,), "", (), legend)] if groups else [])]


def settings(rows: Sequence[StudyRow], baseline: str) -> list[Section]:
    """Return which settings of each variant are not those of the `baseline`, as its resolved scenario has them."""
    flats = {variant: flat(one.scenario) for variant, one in _firsts(rows).items()}
    base = flats.pop(baseline, {})
    lines = [
        (variant, key, _shown(base.get(key, "")), _shown(mine.get(key, "")))
        for variant, mine in flats.items()
        for key in dict.fromkeys((*base, *mine))
        if base.get(key) != mine.get(key) and key != "name"
    ]
    if not base or not lines:
        return []
    table = PageTable(
        ("variant", "setting", f"in {baseline}", "here"),
        tuple(tuple(map(TableCell, line)) for line in lines[:_MOST_LINES]),
        (),
        "",
        f"What is not the same as in {baseline}, whose scenario stands below." + _cut(len(lines)),
    )
    return [Section("settings", "What each variant changes", (), (table,))]


def scenario_of(rows: Sequence[StudyRow], variant: str) -> str:
    """Return the resolved scenario of a variant; empty if it left none."""
    one = _firsts(rows).get(variant)
    return "" if one is None else scenario_shown(one.records)


def _of_groups(rows: Sequence[StudyRow], shown: Sequence[Outcome]) -> PageTable | None:
    """Return a line for each variant and group; none if there is one group, or too many to read."""
    groups = max(len(one.records.groups) for one in rows)
    orders = sum(int(one.records.summary.get("asked", 0)) for one in rows)
    if not 1 < groups <= _MOST_GROUPS or orders > _MOST_ORDERS:
        return None
    found: dict[tuple[str, str], list[GroupShare]] = {}
    for one in rows:
        for group in [] if one.failure else by_group(read(one.folder)):
            found.setdefault((variant_of(one.labels), group.name), []).append(group)
    lines = tuple(_group(at, seeds, shown) for at, seeds in islice(found.items(), _MOST_LINES))
    heads = ("variant", "group", "devices", "asked", *map(_word, shown), "devices heard", "outcomes")
    note = f"Shares of those asked of the group; means over seeds.{_cut(len(found))}"
    return PageTable(heads, lines, tuple(range(2, len(heads) - 1)), "", note)


def _group(at: tuple[str, str], seeds: Sequence[GroupShare], shown: Sequence[Outcome]) -> tuple[TableCell, ...]:
    shares = {one: mean(group.outcomes.get(one.value, 0) / max(1, group.asked) for group in seeds) for one in Outcome}
    heard = mean(1 - group.never_heard / max(1, group.devices) for group in seeds)
    asked = mean(group.asked for group in seeds)
    return (
        *map(TableCell, at),
        TableCell(f"{seeds[0].devices:,}"),
        TableCell(f"{asked:,.0f}"),
        *_shares(shares, shown),
        TableCell(f"{heard:.1%}"),
        TableCell(parts=_bar(shares)),
    )


def _shares(shares: Mapping[Outcome, float], shown: Sequence[Outcome]) -> list[TableCell]:
    return [TableCell(f"{shares[one]:.1%}") for one in shown]


def _bar(shares: Mapping[Outcome, float]) -> tuple[Part, ...]:
    return tuple(
        Part(round(100 * share, 2), OUTCOME[one.value], f"{_word(one)} {share:.1%}")
        for one, share in shares.items()
        if share
    )


def _occurs(outcome: Outcome, found: Sequence[Any]) -> bool:
    return any(place.shares[outcome] for place in found)


def _word(outcome: Outcome) -> str:
    return label(outcome.value)


def _cut(count: int) -> str:
    return f" The first {_MOST_LINES} of {count:,}." if count > _MOST_LINES else ""


def _firsts(rows: Sequence[StudyRow]) -> dict[str, StudyRow]:
    """Return the first run of each variant."""
    found: dict[str, StudyRow] = {}
    for one in rows:
        found.setdefault(variant_of(one.labels), one)
    return found


def _shown(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
