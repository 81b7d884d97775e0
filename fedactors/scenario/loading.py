"""Scenario data from files and overrides, for the rooms that change a recorded scenario before it is validated."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedactors.scenario import overrides
from fedactors.scenario.model import Scenario
from fedactors.scenario.yaml_text import Lines, data_of, parse

__all__ = ["apply_overrides", "data_of", "parse", "validate"]


def apply_overrides(data: Any, changes: Iterable[str]) -> None:
    """Set each `key.path=value` in scenario data. Raises ScenarioError if one leads nowhere, or two contradict."""
    for _ in overrides.applied(data, changes, Scenario):
        pass


def validate(data: Any, source: str, lines: Lines | None = None, folder: Path | None = None) -> Scenario:
    """Turn plain data into a Scenario. Raises ScenarioError that names `source` and the key path."""
    return Scenario.from_data(data, source, lines, folder)
