"""The resolved scenario of a run folder, read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedactors.run_files.files import SCENARIO, scenario_text
from fedactors.scenario.loading import parse


def scenario_data(run: Path) -> dict[str, Any]:
    """Return the scenario of the run folder `run` as plain data, not validated.

    Raises RunFolderError if it cannot be read, ScenarioError if it is not YAML of a scenario.
    """
    return parse(scenario_text(run), str(run / SCENARIO))[0]
