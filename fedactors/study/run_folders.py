"""The folders of a study's runs: what they are called, whether they are complete, and what is set aside."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from fedactors.run_files.files import SUMMARY, object_of
from fedactors.run_files.summary_file import summary_of
from fedactors.scenario.cluster_options import ClusterOptions
from fedactors.scenario.model import Scenario
from fedactors.simulation.endings import is_complete, kind_of
from fedactors.simulation.record.code_files import code_digests
from fedactors.simulation.record.folder_claims import refuse_claimed
from fedactors.study.named_files import file_digests

FAILURE = "failure.json"


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
    return is_complete(summary_of(folder)) or bool(failure(folder))


def failure(folder: Path) -> str:
    """Return why a run has no result and never will, as it diverged; nothing if it has one."""
    path = folder / FAILURE
    if path.exists():
        return str(object_of(path).get("text", ""))
    summary = summary_of(folder)
    return str(summary["ended_because"]) if kind_of(summary) == "diverged" else ""


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
