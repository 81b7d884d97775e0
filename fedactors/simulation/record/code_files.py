"""The user's own files of a run: which they were, by their digests, and copies of them in the run folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from fedactors.errors import RunFolderError
from fedactors.own_code.user_code import CODE, LISTED
from fedactors.run_files.files import object_of
from fedactors.run_files.writing import inner_folder, write
from fedactors.scenario.model import Scenario

_SHORT = 12  # digits of a digest that are shown


def code_digests(scenario: Scenario) -> dict[str, str]:
    """Return the SHA-256 of each file of the user that a scenario names, by what it calls it."""
    return {where: source.digest for where, source in sorted(scenario.code.items())}


def write_code(run: Path, scenario: Scenario) -> None:
    """Write copies of the user's files into the run folder: it can be read where the files are not."""
    if not scenario.code:
        return
    folder = inner_folder(run / CODE)
    listed = {}
    for where, source in sorted(scenario.code.items()):
        name = f"{Path(where).stem}-{source.digest[:_SHORT]}.py"
        write(folder / name, source.text)
        listed[where] = {"copy": name, "sha256": source.digest}
    write(folder / LISTED, json.dumps(listed, indent=2) + "\n")


def recorded_digests(run: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of the user that a run folder holds a copy of, by what its scenario calls it.

    Raises RunFolderError if they cannot be read.
    """
    path = run / CODE / LISTED
    listed = object_of(path) if path.exists() else {}
    return {where: str(one.get("sha256", "")) for where, one in listed.items() if isinstance(one, dict)}


def code_changes(run: Path, before: Mapping[str, str], scenario: Scenario, *, allowed: bool) -> str:
    """Return in what the user's files differ from those of a checkpoint, given by digests; empty if in nothing.

    Raises RunFolderError if they differ and that is not `allowed`.
    """
    changed = list(_differences(before, code_digests(scenario)))
    if changed and not allowed:
        raise RunFolderError(
            f"{run}: code of yours is not that of the checkpoint: {'; '.join(changed)} (accepted: the same files, of"
            f" which {run / CODE} holds copies; or --changed-code, after which bits may differ)"
        )
    return "; ".join(changed)


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"{where} (SHA-256 {_digits(before, where)}, now {_digits(now, where)})"
        for where in sorted({*before, *now})
        if before.get(where) != now.get(where)
    ]


def _digits(digests: Mapping[str, str], where: str) -> str:
    return digests[where][:_SHORT] if where in digests else "none"
