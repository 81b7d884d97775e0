"""The colours of all charts: one per outcome everywhere, and a theme for light and for dark.

Outcomes whose upload reached the server have cold colours; the others are warm or grey. They differ in lightness as
well as in hue, so that readers who do not see all colours can tell them apart, on both backgrounds.
"""

from __future__ import annotations

OUTCOME = {
    "complete": "#2a87a8",
    "partial": "#8ecadd",
    "late": "#e2a534",
    "too_slow": "#c4672f",
    "offline": "#8f98a3",
    "departed": "#8e62a9",
    "cancelled": "#bdb3a4",
    "quarantined": "#c93a4e",
    "stale": "#6f7f3f",
    "lost": "#7d4b8f",
}

MEANING = {
    "complete": "all steps done, upload in time",
    "partial": "some steps done, upload in time",
    "late": "worked on, missed the deadline",
    "too_slow": "not one step fits the deadline",
    "offline": "out of reach, or interrupted",
    "departed": "left for good in the middle",
    "cancelled": "round closed without it",
    "quarantined": "sent NaN or infinity",
    "stale": "arrived from too old a model",
    "lost": "arrived, with too few others of its group for secure aggregation",
}

RUNS = ("#2a87a8", "#d9822b", "#6a9f3c", "#8e62a9", "#c93a4e", "#7d6b55", "#3f6fb5", "#b8a03a")
DASHES = ("solid", "dashed", "dotted")  # of lines whose colours are the same

LIGHT = {"ink": "#1b2127", "text": "#59636e", "line": "#c9d0d7", "grid": "#e9edf0", "page": "#ffffff"}
DARK = {"ink": "#f0f3f5", "text": "#a2acb7", "line": "#3b444d", "grid": "#262d34", "page": "#161b20"}
THEMES = {"light": LIGHT, "dark": DARK}


def run_line(k: int) -> tuple[str, str]:
    """Return the colour and the dash of the line of the `k`-th run: colours first, then dashes."""
    return RUNS[k % len(RUNS)], DASHES[k // len(RUNS) % len(DASHES)]


def label(outcome: str) -> str:
    """Return an outcome as it is read: "too_slow" -> "too slow"."""
    return outcome.replace("_", " ")
