"""Recordings, file by file: `recordings.csv` has the address of each, and its SHA-256 where that is known."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fedactors.errors import UsageError
from fedactors.fetching.downloads import PATIENCE, download, unzip

_LIST = Path(__file__).parent / "recordings.csv"
_FIRST_PHONES = 60
_SHA256_OF_FIRST = "50fe5df8f633dba703c970dd37a57f692953b807debf244db9478f4122f815d7"


class RemoteFile(NamedTuple):
    """A file as it is published."""

    path: str  # below the folder of recordings; starts with the name of its set
    sha256: str  # empty if it is not known
    address: str


def files_of(name: str) -> list[RemoteFile]:
    """Return the files of a set of recordings."""
    with _LIST.open(encoding="utf-8", newline="") as file:
        return [
            RemoteFile(row["path"], row["sha256"], row["address"]) for row in csv.DictReader(file) if row["set"] == name
        ]


def fetch_recording(
    name: str, folder: Path, mirror: str | None = None, tell: Callable[[str], None] = print, patience: float = PATIENCE
) -> Path:
    """Fetch a set of recordings into a folder of its name in `folder`, which is returned.

    Files that are there are kept, so that a fetch which was cut short goes on. A `mirror` is an address below which the
    files have the same paths. Raises UsageError if a file cannot be had, or is not what it should be.
    """
    files = files_of(name)
    unknown = sum(not file.sha256 for file in files)
    for number, file in enumerate(files, 1):
        address = f"{mirror.rstrip('/')}/{file.path}" if mirror else file.address
        tell(f"{name}: {number} of {len(files)}: {address}")
        download(address, folder / file.path, file.sha256, patience)
    if unknown:
        tell(f"{name}: the SHA-256 of {unknown} of {len(files)} files is not known: compared with nothing")
    if name in _AFTERWARDS:
        _AFTERWARDS[name](folder / name, tell)
    return folder / name


def _first_phones(folder: Path, tell: Callable[[str], None]) -> None:
    """Write the phones of FLASH that scenarios here use, which are the first of all."""
    path = folder / "state_traces.json"
    try:
        phones = json.loads(path.read_text(encoding="utf-8"))
        first = {str(number): phones[str(number)] for number in range(_FIRST_PHONES)}
    except (ValueError, TypeError, KeyError) as error:
        path.unlink()
        raise UsageError(f"{path}: not FLASH's recording of phones: {type(error).__name__} {error}; removed") from error
    content = json.dumps(first).encode()
    if hashlib.sha256(content).hexdigest() != _SHA256_OF_FIRST:
        path.unlink()
        raise UsageError(f"{path}: its first {_FIRST_PHONES} phones are not those that were published; removed")
    draft = folder / f".state_traces_{_FIRST_PHONES}.json"
    draft.write_bytes(content)
    draft.replace(folder / f"state_traces_{_FIRST_PHONES}.json")
    tell(f"flash: the first {_FIRST_PHONES} phones have the SHA-256 that is known of them")


def _unzip_all(folder: Path, tell: Callable[[str], None]) -> None:
    for path in sorted(folder.glob("*.zip")):
        unzip(path, folder)


_AFTERWARDS: dict[str, Callable[[Path, Callable[[str], None]], None]] = {"flash": _first_phones, "irish-5g": _unzip_all}
