"""Which process writes to a run folder: a note for messages, beside the lock that decides.

It also says in which folder relative paths of the scenario start, for a run that ends before its first checkpoint.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from fedactors.errors import RunFolderError
from fedactors.run_files.files import CHECKPOINT, SUMMARY, object_of
from fedactors.run_files.writing import write

WRITER = "writer.json"


def note_writer(run: Path, scenario: Path, *, replays: bool = False) -> None:
    """Note that this process writes to `run`, from a scenario in the folder `scenario`. Raises OSError."""
    said = {"process": os.getpid(), "machine": os.uname().nodename, "scenario_folder": str(scenario.resolve())}
    said |= {"command": "replay" if replays else "run"}
    write(run / WRITER, json.dumps(said) + "\n")


def forget_writer(run: Path) -> None:
    """Remove the note; not that of a run without a checkpoint and a summary, which needs it to start again."""
    if (run / SUMMARY).exists() or any((run / CHECKPOINT).glob("round-*")):
        (run / WRITER).unlink(missing_ok=True)


def writer_of(run: Path) -> str:
    """Return who writes to `run`, in words."""
    with suppress(RunFolderError):
        said = object_of(run / WRITER)
        return f"process {said.get('process')} on {said.get('machine')}"
    return "a run"


def writer_elsewhere(run: Path) -> str:
    """Return who noted on another machine that it writes to `run`, and did not take that back; empty if nobody did."""
    with suppress(RunFolderError):
        machine = object_of(run / WRITER).get("machine")
        return "" if machine == os.uname().nodename else writer_of(run)
    return ""


def is_replay(run: Path) -> bool:
    """Return whether the note says that a replay, which trains nothing, writes to `run`; False without a note."""
    with suppress(RunFolderError):
        return object_of(run / WRITER).get("command") == "replay"
    return False


def writer_lives(run: Path) -> bool:
    """Return whether the process that noted on this machine that it writes to `run` is there; False without a note."""
    try:
        os.kill(int(object_of(run / WRITER)["process"]), 0)
    except PermissionError:
        return True  # of another user
    except (RunFolderError, KeyError, ValueError, TypeError, OverflowError, ProcessLookupError):
        return False
    return True


def scenario_folder(run: Path) -> Path:
    """Return where relative paths of the run's scenario start, as far as that was noted: else the current folder."""
    with suppress(RunFolderError):
        folder = object_of(run / WRITER).get("scenario_folder")
        if isinstance(folder, str):
            return Path(folder)
    return Path()
