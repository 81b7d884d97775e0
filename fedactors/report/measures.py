"""What a report shows, as numbers: samples, bins, shares. Pure functions of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.durations import DAY
from fedactors.metric_names import VALIDATION
from fedactors.plan import HEARD
from fedactors.run_files.records import OUTCOMES, Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Counts = dict[str, Floats]

HEARD_NAMES = tuple(name for name in OUTCOMES if name in {outcome.value for outcome in HEARD})
BEST_ROUND = 0  # in place of a number of rounds: the one that is best by the samples for validation


def every(count: int, most: int) -> Ints:
    """Return at most `most` indices, evenly spread over `range(count)`, first and last among them."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))


def gini(values: NDArray[Any]) -> float:
    """Return Gini's coefficient of non-negative values: 0 if all are equal, towards 1 if one has everything."""
    total, count = float(values.sum()), len(values)
    if not total:
        return 0.0
    ranks = np.arange(1, count + 1)
    return float(2 * (ranks * np.sort(values)).sum() / (count * total) - (count + 1) / count)


def outcomes_per_round(records: Records, most: int) -> tuple[Floats, float, Counts]:
    """Return (centres, width, mean number of clients per round by outcome), of at most `most` bins of rounds."""
    rounds = records.rounds
    size = max(1, -(-rounds // most))
    starts = np.arange(0, rounds, size)
    lengths = np.diff([*starts, rounds])
    first = float(records.metrics["round"][0]) if rounds else 1.0
    counts = {name: np.add.reduceat(records.metrics[name], starts) / lengths for name in OUTCOMES} if rounds else {}
    return first + starts + (lengths - 1) / 2, float(size), present(counts)


def present(counts: Counts) -> Counts:
    """Leave out outcomes that never happened."""
    return {name: values for name, values in counts.items() if values.any()}


def _binned(bins: NDArray[Any], count: int, records: Records) -> Counts:
    """Count orders by bin and outcome."""
    table = np.bincount(bins * len(OUTCOMES) + records.orders["outcome"], minlength=count * len(OUTCOMES))
    columns = table.reshape(count, len(OUTCOMES)).astype(np.float64)
    return present({name: columns[:, code] for code, name in enumerate(OUTCOMES)})


def steps_done(records: Records) -> Counts:
    """Return the number of orders by tenth of the wanted steps done (the eleventh bin: all of them), by outcome."""
    wanted = np.maximum(records.orders["wanted"], 1)
    return _binned(np.minimum(records.orders["steps"] * 10 // wanted, 10), 11, records)


def by_hour(records: Records) -> Counts:
    """Return the orders that began in each of the 24 hours of the virtual day, by outcome: the mean over the days."""
    counts = _binned(records.orders["started"] % DAY * 24 // DAY, 24, records)
    hour, end = DAY // 24, int(records.orders["finished"].max(initial=0))
    begun = np.clip((end - np.arange(24) * hour) / DAY, 0, None)
    covered = np.floor(begun) + np.clip(begun % 1 * 24, 0, 1)  # how often each hour went by
    return {name: values / np.where(covered > 0, covered, np.inf) for name, values in counts.items()}


def heard(records: Records) -> NDArray[np.bool_]:
    """Say of each order whether the server received its update."""
    return np.isin(records.orders["outcome"], [OUTCOMES.index(name) for name in HEARD_NAMES])


def contributions(records: Records) -> Floats:
    """Return the local steps that were aggregated from each device, most first."""
    mask = heard(records)
    done = np.bincount(
        records.orders["client"][mask], records.orders["steps"][mask].astype(np.float64), minlength=records.devices
    )
    return np.sort(done.astype(np.float64))[::-1]


@dataclass(frozen=True)
class GroupShare:
    """What became of the orders of one group, and what it gave."""

    name: str
    devices: int
    never_heard: int
    asked: int
    heard: int
    steps: int
    outcomes: dict[str, int]


def by_group(records: Records) -> list[GroupShare]:
    """Return one row per group of the scenario."""
    edges = np.cumsum([0, *(group.count for group in records.groups)])
    return [
        _share(records, group.name, int(low), int(high))
        for group, low, high in zip(records.groups, edges, edges[1:], strict=False)
    ]


def _share(records: Records, name: str, low: int, high: int) -> GroupShare:
    client = records.orders["client"]
    mine = (client >= low) & (client < high)
    got = mine & heard(records)
    counts = np.bincount(records.orders["outcome"][mine], minlength=len(OUTCOMES))
    return GroupShare(
        name=name,
        devices=high - low,
        never_heard=high - low - len(np.unique(client[got])),
        asked=int(mine.sum()),
        heard=int(got.sum()),
        steps=int(records.orders["steps"][got].sum()),
        outcomes={outcome: int(counts[code]) for code, outcome in enumerate(OUTCOMES) if counts[code]},
    )


def last_rounds(records: Records, window: int | None = None) -> int:
    """Return how many rounds figures at the end are means over: `window`, or a tenth of the rounds, rounded up."""
    return max(1, -(-records.rounds // 10)) if window is None else window


def at_end(records: Records, column: str, window: int | None = None) -> float | None:
    """Return the mean of a column of metrics over rounds up to the last one that has a value; None if none has.

    Rounds without a value are left out. How many rounds these are is what `last_rounds` says. With `BEST_ROUND` as the
    window it is the value in the round that is best by the samples for validation; None without such samples.
    """
    if window == BEST_ROUND:
        return _at_best(records, column)
    values = records.metrics[column]
    rows = np.flatnonzero(np.isfinite(values))
    if not len(rows):
        return None
    at = records.metrics["round"][rows]
    return float(values[rows[at > at[-1] - last_rounds(records, window)]].mean())


def _at_best(records: Records, column: str) -> float | None:
    """Return a column of metrics in the first round with the best accuracy in validation, or loss if there is none."""
    if not records.validated:
        return None
    accuracy, loss = (records.metrics[f"{VALIDATION}{name}"] for name in ("accuracy", "loss"))
    best = np.nanargmax(accuracy) if np.isfinite(accuracy).any() else np.nanargmin(loss)
    value = float(records.metrics[column][best])
    return value if np.isfinite(value) else None


def totals(records: Records) -> dict[str, int]:
    """Return the number of orders by outcome, from the summary or, if the run was interrupted, from the metrics."""
    written = records.summary.get("outcomes")
    if isinstance(written, dict):
        return {name: int(written.get(name) or 0) for name in OUTCOMES}
    return {name: int(records.metrics[name].sum()) for name in OUTCOMES}


def virtual_span(records: Records) -> float:
    """Return the virtual seconds that passed."""
    column = records.metrics["virtual_seconds"]
    return float(records.summary.get("virtual_seconds", column[-1] if len(column) else 0.0))


def time_unit(seconds: float) -> tuple[str, float]:
    """Return the unit to show a span of time in, and its seconds."""
    for unit, length in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return unit, length
    return "seconds", 1.0


def byte_unit(number: float) -> tuple[str, float]:
    """Return the unit to show an amount of bytes in, and its bytes."""
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= length:
            return unit, length
    return "bytes", 1.0


def energy_unit(joules: float) -> tuple[str, float]:
    """Return the unit to show an energy in, and its joules."""
    for unit, length in (("MJ", 1e6), ("kJ", 1e3)):
        if joules >= length:
            return unit, length
    return "J", 1.0
