"""Which host computes which chunk; it changes the speed and no bit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby


def spread(costs: Sequence[int], hosts: int, tries: int) -> list[int]:
    """Return a host for each chunk: the costliest first, each to the host with the least load; others at each try."""
    load = [0] * hosts
    places = [0] * len(costs)
    for chunk in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
        host = min(range(hosts), key=lambda h: (load[h], h))
        load[host] += costs[chunk]
        places[chunk] = (host + tries) % hosts
    return places


def ranges(costs: Sequence[int], branches: Sequence[int], hosts: int, tries: int) -> list[int]:
    """Return a host for each chunk so that each host has whole branches that follow one another, about equal in cost.

    Hosts are used one after the other; another one is the first at each try.
    """
    total = max(sum(costs), 1)
    done = 0
    places: list[int] = []
    for _, run in groupby(zip(branches, costs, strict=True), key=lambda one: one[0]):
        parts = [cost for _, cost in run]
        middle = done + sum(parts) / 2
        places += [(min(int(middle * hosts / total), hosts - 1) + tries) % hosts] * len(parts)
        done += sum(parts)
    return places


def by_kind(kinds: Sequence[int], hosts: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return (chunks, hosts) of each kind, as positions: chunks of `kinds` go to `hosts` of the same kind.

    If no host is of a kind, its chunks go to any host.
    """
    found = []
    for kind in sorted(set(kinds)):
        fitting = [place for place, one in enumerate(hosts) if one == kind] or list(range(len(hosts)))
        found.append(([chunk for chunk, one in enumerate(kinds) if one == kind], fitting))
    return found
