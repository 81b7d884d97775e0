"""Which host computes which chunk; it changes the speed and no bit."""

from __future__ import annotations

from collections.abc import Sequence

_BLOCKS = 16  # that a host has at least, so that hosts end at about the same time


def spread(costs: Sequence[int], hosts: int, tries: int) -> list[int]:
    """Return a host for each chunk: the costliest first, each to the host with the least load; others at each try."""
    load = [0] * hosts
    places = [0] * len(costs)
    for chunk in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
        host = min(range(hosts), key=lambda h: (load[h], h))
        load[host] += costs[chunk]
        places[chunk] = (host + tries) % hosts
    return places


def ranges(costs: Sequence[int], hosts: int, tries: int) -> list[int]:
    """Return a host for each chunk so that each host has chunks that follow one another, about equal in cost.

    Where hosts have many chunks they get blocks of neighbours, whose sum is one. Hosts are used one after the other;
    another one is the first at each try.
    """
    block = 1 << max(0, (len(costs) // (_BLOCKS * hosts)).bit_length() - 1)
    total = max(sum(costs), 1)
    done = 0
    places: list[int] = []
    for first in range(0, len(costs), block):
        parts = costs[first : first + block]
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
