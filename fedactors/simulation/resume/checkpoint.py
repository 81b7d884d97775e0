"""Checkpoints: all that a run needs to go on with the same bits, in folders that appear whole or not at all.

    checkpoint/round-00000060/
        checkpoint.json               what is known after 60 rounds, and length and SHA-256 of every file beside it
        server.safetensors            "60/x": the server's state before the next round; "58/x": an older version that
                                      later updates still start from
        clients-00000000.safetensors  what clients keep, 64 of them in a file: "17/c"

The clock is not in it: it is run again from the start, which is cheap and gives the same Plans. A checkpoint is written
to the side, synced, and renamed; the one before it stays. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic's, before Python 3.12

from fedactors.errors import RunFolderError
from fedactors.fleet.messages import SavedState
from fedactors.run_files.files import CHECKPOINT, damaged, digest_of, object_of, problem
from fedactors.run_files.writing import (
    inner_folder,
    refuse_linked,
    remove,
    remove_pending_folders,
    replacing_folder,
    write,
)
from fedactors.simulation.resume import client_state_files

FORMAT = "fedactors checkpoint"
FORMAT_VERSION = 1
_HEADER = "checkpoint.json"
SERVER = "server.safetensors"
_NAME = r"round-\d{8,}"  # of the folder of a checkpoint


class PastScenario(TypedDict):
    """A scenario that does not hold any more."""

    rounds: int  # that were done when it ended
    scenario: Mapping[str, Any]  # resolved


@dataclass(frozen=True)
class Checkpoint:
    """What is known of a run after `plans` of its rounds; `path` is where its tensors lie."""

    plans: int
    scenario: Mapping[str, Any]  # resolved, every default shown
    folder: str  # where the scenario's relative paths start
    devices: Mapping[str, str]  # device type of "clients", "server", "central": bits depend on them
    data: str  # digest of the samples
    made_with: Mapping[str, str]  # versions of programs: bits may depend on them
    code: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of each file of the user
    digests: Mapping[str, str] = field(default_factory=dict)  # of "plans" and "metrics"
    metrics_bytes: int = 0  # length of metrics.jsonl
    past: Sequence[PastScenario] = ()  # of a branch: what held before
    quarantined: Mapping[int, Sequence[int]] = field(default_factory=dict)  # version -> clients set aside
    final: Mapping[str, Any] | None = None  # accuracy and loss of the last evaluation, null where one is no number
    path: Path = Path()
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # name -> {"bytes", "sha256"}

    def saved(self) -> SavedState | None:
        """Return the tensors, those of clients one file after the other; None before the first round."""
        if not self.files:
            return None
        states: dict[int, dict[str, Any]] = {}
        for (version, name), value in client_state_files.numbered(self.path / SERVER).items():
            states.setdefault(version, {})[name] = value
        shards = [self.path / name for name in self.files if name != SERVER]
        return SavedState(self.plans, states.pop(self.plans), client_state_files.load(shards), states)


def save(run: Path, checkpoint: Checkpoint, saved: SavedState | None, kept: int = 2) -> None:
    """Write a checkpoint into the run folder `run`, and remove all but the last `kept` of them."""
    root = inner_folder(run / CHECKPOINT)
    remove_pending_folders(root, _NAME)
    with replacing_folder(root / _name(checkpoint.plans)) as pending:
        files = {} if saved is None else _tensors(pending, saved)
        known = {key: value for key, value in asdict(checkpoint).items() if key not in ("path", "files")}
        header = {"format": FORMAT, "version": FORMAT_VERSION, **known, "files": files}
        write(pending / _HEADER, json.dumps(header | {"sha256": _digest_of(header)}, indent=1) + "\n")
    for old in checkpoints(run)[kept:]:
        remove(old)


def checkpoints(run: Path) -> list[Path]:
    """Return the checkpoints of a run folder, the last one first. Raises RunFolderError if a link leads to them."""
    root = run / CHECKPOINT
    refuse_linked(root)
    names = os.scandir(root) if root.exists() else ()
    found = (one.name for one in names if re.fullmatch(_NAME, one.name) and one.is_dir(follow_symlinks=False))
    return [root / name for name in sorted(found, reverse=True)]


def load(run: Path, *, previous: bool = False) -> Checkpoint:
    """Return the last checkpoint of the run folder `run`, or the one before it; every file has been verified.

    Raises RunFolderError if there is none, or names the part that is damaged or not ours.
    """
    if not run.is_dir():
        raise problem(run, "a file" if run.exists() else "nothing there", "the folder of a `fedactors run`")
    found = checkpoints(run)
    if len(found) <= previous:
        raise RunFolderError(
            f"{run}: holds no {'previous ' * previous}checkpoint (accepted: the folder of a `fedactors run`"
            " that got as far as its first)"
        )
    try:
        return read(found[previous])
    except RunFolderError as error:
        hint = "; the checkpoint before it may be whole: --previous" if not previous and len(found) > 1 else ""
        raise RunFolderError(f"{error}{hint}") from None


def at_most(run: Path, plans: int) -> Checkpoint | None:
    """Return the last checkpoint of the run folder `run` after at most so many rounds, verified; None if it has none.

    Raises RunFolderError that names the part that is damaged.
    """
    return next((read(path) for path in checkpoints(run) if header_of(path).plans <= plans), None)


def discard_after(run: Path, checkpoint: Checkpoint) -> None:
    """Remove checkpoints later than `checkpoint`, from which the run goes on."""
    for path in checkpoints(run):
        if path.name > _name(checkpoint.plans):
            remove(path)


def _name(plans: int) -> str:
    """Return the name of the folder of a checkpoint after so many rounds."""
    return f"round-{plans:08}"


def read(path: Path) -> Checkpoint:
    """Return the checkpoint in the folder `path`. Raises RunFolderError if a part is damaged or not ours."""
    known = header_of(path)
    for name, expected in known.files.items():
        _verify(path / name, expected)
    return replace(known, path=path)


def header_of(checkpoint: Path) -> Checkpoint:
    """Return the header of a checkpoint. Raises RunFolderError if it is damaged, not ours, or too new."""
    path = checkpoint / _HEADER
    header = object_of(path)
    if header.get("format") != FORMAT:
        raise problem(path, "not a checkpoint of fedactors", f'"format": "{FORMAT}"')
    if header.get("version") != FORMAT_VERSION:
        raise problem(path, f"version {header.get('version')!r} of the format", str(FORMAT_VERSION))
    if header.pop("sha256", None) != _digest_of(header):
        raise damaged(path, "its checksum does not fit")
    try:
        header = {"code": {}, "past": [], **header}  # of before scenarios could name files, and branches had a past
        known = {one.name: header[one.name] for one in fields(Checkpoint) if one.name != "path"}
        found = TypeAdapter(Checkpoint).validate_python(known)
    except (KeyError, ValidationError) as error:
        raise damaged(path, " ".join(str(error).split())[:200]) from None
    if any(Path(name).name != name for name in found.files):
        raise damaged(path, "it names a file outside its folder")
    return found


def _verify(path: Path, expected: Mapping[str, Any]) -> None:
    """Raise RunFolderError if a file is not the one that was written."""
    found = _facts(path)
    if found["bytes"] != expected["bytes"]:
        raise damaged(path, f"{found['bytes']:,} bytes in place of {expected['bytes']:,}")
    if found != expected:
        raise damaged(path, "its checksum does not fit")


def _tensors(folder: Path, saved: SavedState) -> dict[str, dict[str, Any]]:
    """Write server and client states into `folder` and return the facts of each file."""
    states = {saved.version: saved.state, **saved.older}
    tensors = {f"{at}/{name}": np.asarray(v, order="C") for at, one in states.items() for name, v in one.items()}
    client_state_files.write(folder / SERVER, tensors)
    files = {}
    for path in (folder / SERVER, *client_state_files.save(folder, saved.kept)):
        _sync(path)
        files[path.name] = _facts(path)
    return files


def _facts(path: Path) -> dict[str, Any]:
    size, digest = digest_of(path)
    return {"bytes": size, "sha256": digest}


def _digest_of(header: Mapping[str, Any]) -> str:
    as_read = json.loads(json.dumps(header))  # numbers that are keys become texts, which sort in another order
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()


def _sync(path: Path) -> None:
    """Have the content of a file reach the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
