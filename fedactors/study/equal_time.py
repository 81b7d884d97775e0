"""Whether variants had the same virtual time: rounds of some last longer, and a round under way is always finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from fedactors.report.terminal_text import span
from fedactors.run_files.records import Records
from fedactors.simulation.endings import kind_of
from fedactors.study.compared import Compared

_MUCH = 1.1  # times the virtual time of the shortest variant
_MANY = 100_000  # rounds, so that the time ends a run and not their number


def unequal_times(comparison: Compared) -> list[str]:
    """Return a sentence if variants lasted for unlike virtual times: for as many rounds, or beyond `server.until`."""
    done = _finished(comparison)
    lasted = {name: fmean(map(_seconds, records)) for name, records in done.items()}
    if len(lasted) < 2 or max(lasted.values()) <= _MUCH * min(lasted.values()):
        return []
    short = min(lasted, key=lambda name: lasted[name])
    long = max(lasted, key=lambda name: lasted[name])
    runs = [one for records in done.values() for one in records]
    times = f"the variants lasted {span(lasted[short])} ({short}) to {span(lasted[long])} ({long}) of virtual time"
    if all(kind_of(one.summary) == "time" for one in runs):
        return [
            f"{times}, and figures are those at these ends: a round that is under way at server.until is finished; at"
            " equal time: --plot FILE --against virtual, or shorter rounds (server.deadline)"
        ]
    return [f"{times}{_rounds(done)}; at equal time: {_equal_time(lasted[short], runs)}"]


def _rounds(done: Mapping[str, list[Records]]) -> str:
    """Return for how many rounds variants lasted, as a part of a sentence."""
    counts = [fmean(one.rounds for one in records) for records in done.values()]
    if min(counts) == max(counts):
        return " for the same rounds"
    return f" and {min(counts):,.0f} to {max(counts):,.0f} rounds"


def _equal_time(seconds: float, runs: Iterable[Records]) -> str:
    """Return what to write so that all variants last for so many seconds of virtual time."""
    until = span(seconds).replace(" ", "")
    return f"--set server.until={until} --set server.rounds={max(_MANY, 10 * max(one.rounds for one in runs))}"


def _finished(comparison: Compared) -> dict[str, list[Records]]:
    """Return the runs of each variant that could be finished and have rounds, of those that have any."""
    found = {
        name: [one.records for one in rows if not one.failure and one.records.rounds]
        for name, rows in comparison.variants.items()
    }
    return {name: records for name, records in found.items() if records}


def _seconds(records: Records) -> float:
    return float(records.metrics["virtual_seconds"][-1])
