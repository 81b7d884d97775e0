"""What became of the clients that were asked, place by place of a study: a table of shares."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any, NamedTuple

from fedactors.plain_text import aligned
from fedactors.plan import Outcome
from fedactors.study.exports.comparison_files import sheet
from fedactors.study.run_figures import StudyRow
from fedactors.study.study_cells import Label

ALWAYS = (Outcome.COMPLETE, Outcome.PARTIAL, Outcome.LATE, Outcome.TOO_SLOW, Outcome.OFFLINE, Outcome.DEPARTED)
NOTE = (
    "Shares of the clients asked, by how their trips ended; of all devices, those heard at least once; and how unevenly"
    " updates come from them (Gini; 0: all alike). Means over seeds."
)


class PlaceOutcomes(NamedTuple):
    """What became of the clients asked at one place of a study, as means over its seeds."""

    at: tuple[Label, ...]
    rounds: float
    asked: float
    shares: dict[Outcome, float]  # of those asked
    heard: float  # of all devices, those heard at least once
    gini: float


def places(rows: Sequence[StudyRow]) -> list[PlaceOutcomes]:
    """Return a line for each place, in the order of `rows`; runs that diverged are left out."""
    found: dict[tuple[Label, ...], list[StudyRow]] = {}
    for row in rows:
        if not row.failure:
            found.setdefault(tuple(row.labels.values()), []).append(row)
    return [_place(at, mine) for at, mine in found.items()]


def _place(at: tuple[Label, ...], rows: Sequence[StudyRow]) -> PlaceOutcomes:
    said = [row.records.summary for row in rows]
    asked = [one["asked"] for one in said]
    shares = {
        outcome: mean(one["outcomes"].get(outcome.value, 0) / max(1, one["asked"]) for one in said)
        for outcome in Outcome
    }
    heard = mean(one["clients_heard"] / row.records.devices for one, row in zip(said, rows, strict=True))
    gini = mean(one["fairness"]["gini"] for one in said)
    return PlaceOutcomes(at, mean(one["plans"] for one in said), mean(asked), shares, heard, gini)


def text(rows: Sequence[StudyRow]) -> str:
    """Return the table as text, with the outcomes that occur anywhere."""
    found = places(rows)
    shown = [one for one in Outcome if one in ALWAYS or any(place.shares[one] for place in found)]
    axes = list(rows[0].labels) if rows else []
    heads = [*axes, "rounds", "asked", *(_words(one) for one in shown), "devices heard", "Gini"]
    lines = [
        [
            *map(str, place.at),
            f"{place.rounds:,.0f}",
            f"{place.asked:,.0f}",
            *(f"{place.shares[one]:.1%}" for one in shown),
            f"{place.heard:.1%}",
            f"{place.gini:.2f}",
        ]
        for place in found
    ]
    return "\n".join([*aligned([heads, *lines]), "", NOTE])


def as_csv(rows: Sequence[StudyRow]) -> str:
    """Return the table for programs, with all outcomes."""
    axes = list(rows[0].labels) if rows else []
    lines: list[list[Any]] = [[*axes, "rounds", "asked", *(one.value for one in Outcome), "devices_heard", "gini"]]
    for place in places(rows):
        shares = [place.shares[one] for one in Outcome]
        lines.append([*place.at, place.rounds, place.asked, *shares, place.heard, place.gini])
    return sheet(lines)


def _words(outcome: Outcome) -> str:
    return outcome.value.replace("_", " ")
