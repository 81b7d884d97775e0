"""Whether variants had the same virtual time: with the same number of rounds, some last longer than others."""

from __future__ import annotations

from statistics import fmean

from fedactors.report.terminal_text import span
from fedactors.run_files.records import Records
from fedactors.study.compared import Compared

_MUCH = 1.1  # times the virtual time of the shortest variant
_MANY = 100_000  # rounds, so that the time ends a run and not their number


def unequal_times(comparison: Compared) -> list[str]:
    """Return a sentence if variants lasted for unlike virtual times, only because all did the same number of rounds."""
    done = _finished(comparison)
    rounds = {one.rounds for records in done.values() for one in records}
    if len(rounds) != 1 or rounds == {0}:
        return []
    lasted = {name: fmean(map(_seconds, records)) for name, records in done.items()}
    short = min(lasted, key=lambda name: lasted[name])
    long = max(lasted, key=lambda name: lasted[name])
    if lasted[long] <= _MUCH * lasted[short]:
        return []
    until = span(lasted[short]).replace(" ", "")
    return [
        f"the variants lasted {span(lasted[short])} ({short}) to {span(lasted[long])} ({long}) of virtual time for the"
        f" same rounds; at equal time: --set server.until={until} --set server.rounds={max(_MANY, 10 * rounds.pop())}"
    ]


def _finished(comparison: Compared) -> dict[str, list[Records]]:
    """Return the runs of each variant that could be finished, of those that have any."""
    found = {name: [one.records for one in rows if not one.failure] for name, rows in comparison.variants.items()}
    return {name: records for name, records in found.items() if records}


def _seconds(records: Records) -> float:
    return float(records.metrics["virtual_seconds"][-1])
