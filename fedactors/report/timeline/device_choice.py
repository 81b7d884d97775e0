"""Which devices have a row in the timeline: all of them, or of a large population a sample and the extremes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedactors.report.measures import Ints, every, heard
from fedactors.run_files.records import OUTCOMES, Records

DEVICES = 3_000
_EXTREMES = 100  # devices kept at each end of an order


@dataclass(frozen=True)
class DeviceRows:
    """The devices that have a row, ascending; what became of their orders, `(devices, outcomes)`; their steps.

    `note` tells what is left out.
    """

    devices: Ints
    counts: Ints
    steps: Ints  # local steps that were aggregated
    note: str = ""


def choose(records: Records) -> DeviceRows:
    """Return the rows of a run: every device, also those never asked, of at most `DEVICES`.

    Of more, those are kept that were asked, heard, late or offline most and that were heard least, and others evenly
    spread over those that were asked.
    """
    client = records.orders["client"]
    population = records.devices
    if population <= DEVICES:
        return _rows(records, np.arange(population), "")
    asked, place = np.unique(client, return_inverse=True)
    counts = _counts(place, records.orders["outcome"], len(asked))
    kept = np.union1d(every(len(asked), DEVICES - 5 * _EXTREMES), _extremes(counts, place[heard(records)]))
    note = (
        f"{len(kept):,} of {population:,} devices have a row: the {_EXTREMES} most asked, most heard, most late, most"
        f" offline and least heard, and others evenly spread over the {len(asked):,} that were asked"
        if len(kept) < len(asked)
        else f"The {len(kept):,} devices that were asked have a row, of {population:,}"
    )
    return _rows(records, asked[kept], f"{note}.")


def _extremes(counts: Ints, of_heard: Ints) -> Ints:
    """Return the rows of `counts` at the ends of the orders that a reader can choose."""
    got = np.bincount(of_heard, minlength=len(counts))
    late, offline = (counts[:, OUTCOMES.index(name)] for name in ("late", "offline"))
    orders = (-counts.sum(axis=1), -got, -late, -offline, got)
    return np.unique(np.concatenate([np.argsort(keys, kind="stable")[:_EXTREMES] for keys in orders]))


def _rows(records: Records, devices: Ints, note: str) -> DeviceRows:
    client = records.orders["client"]
    mine = np.isin(client, devices)
    place = np.searchsorted(devices, client[mine])
    got = heard(records)[mine]
    steps = np.bincount(place[got], records.orders["steps"][mine][got].astype(np.float64), minlength=len(devices))
    counts = _counts(place, records.orders["outcome"][mine], len(devices))
    return DeviceRows(devices, counts, steps.astype(np.int64), note)


def _counts(place: Ints, outcome: NDArray[np.integer], rows: int) -> Ints:
    """Return how many orders of each row came to each outcome."""
    kinds = len(OUTCOMES)
    return np.bincount(place * kinds + outcome, minlength=rows * kinds).reshape(rows, kinds)
