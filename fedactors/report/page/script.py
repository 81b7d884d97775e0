"""What the page does: the scripts beside this file, in the order in which they build on one another."""

from __future__ import annotations

from pathlib import Path

_FILES = (
    "packed.js", "devices.js", "drawing.js", "clock_axis.js", "timeline.js", "controls.js", "linked_zoom.js", "save.js",
    "page.js",
)  # fmt: skip


def script() -> str:
    """Return the scripts as one."""
    folder = Path(__file__).parent
    return "\n".join(["const fedactors = {};", *((folder / name).read_text(encoding="utf-8") for name in _FILES)])
