"""How large Ray's object store may be where processes have a limit on their address space (`ulimit -v`).

Every process of Ray maps the whole store. Where the limit has no room for it, Ray does not say so: its raylet dies, its
actors die again and again, or its threads abort the driver. So room is looked for before Ray starts.
"""

from __future__ import annotations

import os
import resource

from fedactors.errors import ClusterError
from fedactors.job_limits import usable_memory

_BESIDE_STORE = 5 * 2**30  # bytes that a process with Ray and torch maps besides the store (measured with Ray 2.60)
_LEAST_STORE = 10**8
_USUAL_SHARE = 0.3  # of the memory that is free: Ray's own choice


def store_within_limit(store: int | None) -> int | None:
    """Return the bytes of the object store: `store` if it is given; None leaves them to Ray, where nothing is limited.

    Raises ClusterError if the limit on the address space of a process is too low for Ray.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return store
    room = limit - _BESIDE_STORE
    if room < (store or _LEAST_STORE):
        needed = _BESIDE_STORE + (store or _LEAST_STORE)
        smaller = "a smaller cluster.object_store, " if store else ""
        raise ClusterError(
            f"Ray needs {needed / 1e9:.1f} GB of address space, found a limit of {limit / 1e9:.1f} GB"
            f" (accepted: a higher limit, see `ulimit -v`, {smaller}or --fleet local, which needs no Ray)"
        )
    free = min(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), usable_memory())
    return store or min(room, max(_LEAST_STORE, int(free * _USUAL_SHARE)))
