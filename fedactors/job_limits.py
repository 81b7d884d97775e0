"""The cores and the memory that this process may use: those of its job or container, not of the whole machine.

Slurm, Docker and Kubernetes bind processes to cores and put them into control groups, whose limits are files below
/sys/fs/cgroup: man 7 cgroups; Linux, Documentation/admin-guide/cgroup-v2.rst, and cgroup-v1/memory.rst for the first
version.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from math import ceil, inf
from pathlib import Path, PurePosixPath

_ROOT = Path("/")


def usable_cores(system: Path = _ROOT) -> int:
    """Return how many cores this process can keep busy, at least one; a part of a core counts as one.

    The files of the system are read below the folder `system`.
    """
    try:
        bound = len(os.sched_getaffinity(0))
    except AttributeError:  # a system that binds no process to cores
        bound = os.cpu_count() or 1
    least = float(bound)
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        for text in _limits(system, "cpu", names):
            with suppress(ValueError, ZeroDivisionError):
                least = min(least, allowed_cores(text))
    return max(1, ceil(least))


def usable_memory(system: Path = _ROOT) -> int:
    """Return how many bytes of memory this process may take; `system` as in `usable_cores`."""
    least = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in ("memory.max", "memory.limit_in_bytes"):
        for text in _limits(system, "memory", (name,)):
            with suppress(ValueError):
                least = min(least, allowed_bytes(text))
    return int(least)


def allowed_cores(text: str) -> float:
    """Return how many cores a quota allows, of a text of its microseconds and those of a period; inf without a quota.

    Raises ValueError or ZeroDivisionError if it is another text.
    """
    quota, period = text.split()
    return inf if quota in ("max", "-1") else int(quota) / int(period)


def allowed_bytes(text: str) -> float:
    """Return how many bytes a limit allows; inf without a limit. Raises ValueError if the text is no limit."""
    return inf if text.strip() == "max" else int(text)


def group_folders(text: str, controller: str) -> Iterator[PurePosixPath]:
    """Yield the folders below /sys/fs/cgroup that may limit a process for a `controller`: its own, then those above.

    `text` is that of /proc/self/cgroup. In the first version of control groups each controller has its own tree.
    """
    for line in text.splitlines():
        number, names, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" or controller in names.split(","):
            parts = [part for part in path.split("/") if part]
            parts = [] if ".." in parts else parts  # above what the container can see
            tree = [controller] if names else []
            for depth in range(len(parts), -1, -1):
                yield PurePosixPath(*tree, *parts[:depth])


def _limits(system: Path, controller: str, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the texts of the files `names`, joined, in each folder that has them."""
    with suppress(OSError):
        text = (system / "proc/self/cgroup").read_text(errors="replace")
        for folder in group_folders(text, controller):
            with suppress(OSError):
                yield " ".join((system / "sys/fs/cgroup" / folder / name).read_text().strip() for name in names)
