"""The folders of a study's runs: what they are called, whether they are complete, and what is set aside."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedactors.errors import FolderAccessError, RunFolderError
from fedactors.run_files.files import (
    METRICS,
    SCENARIO,
    SUMMARY,
    damaged,
    object_of,
    refuse_other_kinds,
    scenario_text,
    whole_lines,
    yaml_of,
)
from fedactors.run_files.summary_file import summary_of
from fedactors.scenario.cluster_options import ClusterOptions
from fedactors.scenario.model import Scenario
from fedactors.simulation.endings import is_complete, kind_of
from fedactors.simulation.record.code_files import code_digests
from fedactors.simulation.record.folder_claims import refuse_claimed
from fedactors.simulation.resume.checkpoint import load
from fedactors.study.named_files import file_digests
from fedactors.version import ENGINE

FAILURE = "failure.json"
_TABLES = ("plans.parquet", "orders.parquet")
_UNKNOWN = "0"  # the engine of runs that were made before engines had numbers


def folder_of(scenario: Scenario, out: Path) -> Path:
    """Return the folder of a run; studies that have a run in common share it, whatever they call it.

    Its name is a digest of what the run depends on: the scenario without its name and its cluster, the bits that are
    computed unless they are portable, and the contents of the user's code, recordings and data.
    Raises RunFolderError if one of these cannot be read.
    """
    said = {key: value for key, value in scenario.dump().items() if key not in ("name", "cluster")}
    if scenario.cluster.bits != ClusterOptions().bits:
        said["bits"] = scenario.cluster.bits
    if code := code_digests(scenario):
        said["code"] = code
    if files := file_digests(scenario):
        said["files"] = files
    return out / f"run-{hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]}"


def replay_folder(run: Path) -> Path:
    """Return the folder of the replay of a run, beside that of the run."""
    return run.with_name(run.name.replace("run-", "replay-", 1))


def complete(folder: Path) -> bool:
    """Say whether a run came to its end, or diverged and would again."""
    if not (folder / SUMMARY).exists():
        return False
    return is_complete(_summary(folder)) or bool(failure(folder))


def failure(folder: Path) -> str:
    """Return why a run has no result and never will, as it diverged; nothing if it has one."""
    path = folder / FAILURE
    if path.exists():
        return str(object_of(path).get("text", ""))
    summary = _summary(folder)
    return str(summary["ended_because"]) if kind_of(summary) == "diverged" else ""


def _summary(folder: Path) -> Mapping[str, Any]:
    """Return the summary of a run; an empty one if it is damaged: the run is gone on with from its checkpoint then."""
    try:
        return summary_of(folder)
    except FolderAccessError:
        raise
    except RunFolderError:
        return {}


def fresh(folder: Path, why: str) -> Path:
    """Set a run that cannot be gone on with aside, say `why` and its new name on stderr, and return the folder's path.

    Raises RunFolderError if another process is writing to it, such as another study that has the run too.
    """
    refuse_claimed(folder)
    number = 0
    while folder.exists():
        number += 1
        aside = folder.with_name(f"{folder.name}.unfinished-{number}")
        if not aside.exists():
            folder.rename(aside)
            print(f"{why}; set aside as {aside.name}, and run from the beginning", file=sys.stderr, flush=True)
    return folder


def engine_of(summary: Mapping[str, Any]) -> str:
    """Return the engine's version of the run that has this summary; of one that was gone on with, that of its start."""
    made_with = summary.get("made_with_before") or summary.get("made_with") or {}
    return str(made_with.get("engine", _UNKNOWN))


def engine_of_begun(folder: Path) -> str:
    """Return the engine's version of the run whose checkpoint is in `folder`; today's if none there is whole."""
    try:
        return str(load(folder).made_with.get("engine", _UNKNOWN))
    except RunFolderError:
        return ENGINE


def set_aside_if_old(folder: Path) -> None:
    """Set a run aside that another engine has made or begun: its bits are not those of this one. Raises as `fresh`."""
    begun_with = engine_of(summary_of(folder)) if complete(folder) else engine_of_begun(folder)
    if begun_with != ENGINE:
        fresh(folder, f"{folder}: made with engine {begun_with}, now {ENGINE}")


def set_aside_if_damaged(folder: Path) -> None:
    """Set a run aside that is complete, and whose files are not what its summary counts. Raises as `fresh`."""
    if complete(folder) and not failure(folder) and (why := _damage(folder)):
        fresh(folder, why)


def _damage(folder: Path) -> str:
    """Return which file that tables are made of is gone, empty or cut, of a complete run; nothing if none is."""
    try:
        if not yaml_of(folder / SCENARIO, scenario_text(folder)):
            raise damaged(folder / SCENARIO, "empty")
        for name in _TABLES:
            refuse_other_kinds(folder / name)
        lines, plans = sum(1 for _ in whole_lines(folder / METRICS)), summary_of(folder).get("plans")
        if lines != plans:
            raise damaged(folder / METRICS, f"{lines} lines, and {SUMMARY} counts {plans} rounds")
    except FolderAccessError:
        raise
    except RunFolderError as error:
        return str(error)
    return ""
