"""Which host computes which chunk: a matter of speed alone, never of bits."""

from __future__ import annotations

from collections.abc import Sequence


def spread(costs: Sequence[int], hosts: int, tries: int) -> list[int]:
    """Return a host for each chunk: the costliest first, each to the least loaded; another one at each try.

    Where a chunk is computed never changes its bits.
    """
    load, places = [0] * hosts, [0] * len(costs)
    for chunk in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
        host = min(range(hosts), key=lambda h: (load[h], h))
        load[host] += costs[chunk]
        places[chunk] = (host + tries) % hosts
    return places
