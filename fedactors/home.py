"""Folders in which data sets and recordings are looked for, and into which they are fetched.

The environment variables FEDACTORS_DATA and FEDACTORS_TRACES name them. Without those they are `data` and `traces` in
the folder FEDACTORS_HOME, by default the one that the system has for data of the user's programs.
"""

from __future__ import annotations

import os
from pathlib import Path

DATA = "FEDACTORS_DATA"
TRACES = "FEDACTORS_TRACES"
HOME = "FEDACTORS_HOME"
TRACE_SETS = (
    "fcc", "fedscale", "flash", "flash-devices", "hsdpa", "irish-5g", "lanl", "latency", "mahimahi", "spot",
)  # fmt: skip
"""Recordings that can be fetched; each lies in a folder of its name."""


def home() -> Path:
    """Return the folder of what fedactors fetches, which need not be there."""
    if given := os.environ.get(HOME):
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("fedactors", appauthor=False)


def data_target() -> Path:
    """Return the folder into which data sets are fetched."""
    given = os.environ.get(DATA)
    return Path(given).expanduser() if given else home() / "data"


def trace_target() -> Path:
    """Return the folder into which recordings are fetched."""
    given = os.environ.get(TRACES)
    return Path(given).expanduser() if given else home() / "traces"


def data_root(given: str | None) -> str | None:
    """Return the folder of data sets: the one a scenario gives, else FEDACTORS_DATA's, else that of fetched ones."""
    if found := given or os.environ.get(DATA):
        return found
    fetched = home() / "data"
    return str(fetched) if fetched.is_dir() else None


def trace_roots() -> list[Path]:
    """Return the folders in which recordings are looked for beside the scenario's own, FEDACTORS_TRACES' first."""
    given = os.environ.get(TRACES)
    fetched = home() / "traces"
    return [*([Path(given)] if given else []), *([fetched] if fetched.is_dir() else [])]


def trace_command(path: str) -> str:
    """Return the command that fetches the recording at a path such as fcc/train/trace_909; empty if none does."""
    name = path.partition("/")[0]
    return f"fedactors traces fetch {name}" if name in TRACE_SETS else ""
