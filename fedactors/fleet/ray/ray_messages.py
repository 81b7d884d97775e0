"""What Ray prints in the driver about its services and actors: kept for the log of a run, and not shown.

Ray has no setting for it. A thread of its driver prints what its services report, pages of their logs among it, by a
function of `ray._private.worker`; that function is replaced while a run lasts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import ray

_MOST = 100  # messages
_LONGEST = 50_000  # characters of one
_FUNCTION = "print_to_stdstream"

_kept: deque[str] = deque(maxlen=_MOST)
_original: list[Callable[..., None]] = []


def keep_messages() -> None:
    """Keep from now on what Ray would print, also before it is started."""
    module: Any = ray._private.worker
    if not _original and hasattr(module, _FUNCTION):
        _original.append(getattr(module, _FUNCTION))
        setattr(module, _FUNCTION, _keep)


def show_messages() -> None:
    """Have Ray print again, as it did."""
    if _original:
        setattr(ray._private.worker, _FUNCTION, _original.pop())


def take_messages() -> list[str]:
    """Return what Ray would have printed since the last call."""
    found = []
    while _kept:
        found.append(_kept.popleft())
    return found


def _keep(data: dict[str, Any], *_: Any, **__: Any) -> None:
    lines = "\n".join(map(str, data.get("lines", ())))
    _kept.append(lines[:_LONGEST])
