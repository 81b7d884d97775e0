"""How the page looks. Colours come from the palette, so that page and charts agree in light and in dark."""

from __future__ import annotations

from pathlib import Path

from fedactors.report.palette import DARK, LIGHT

_LIGHT = {**LIGHT, "soft": "#f5f7f8", "accent": "#20718e"}
_DARK = {**DARK, "soft": "#1e252b", "accent": "#6fbcd6"}


def css() -> str:
    """Return the style sheet: dark where the system or the reader wants it, light on paper."""
    light, dark = _variables(_LIGHT), _variables(_DARK)
    page = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    rules = [
        f":root{{color-scheme:light dark;{light}}}",
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}",
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}",
        "@media screen{:root[data-theme=light]{color-scheme:light}}",
        "@media print{:root{color-scheme:light}}",
    ]
    return "\n".join([*rules, page])


def _variables(colors: dict[str, str]) -> str:
    return ";".join(f"--{name}:{color}" for name, color in colors.items())
