"""Files of run folders, which others may have written or damaged: read as plain data, refused with one message each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedactors.errors import RunFolderError


def refuse_other_kinds(path: Path) -> None:
    """Raise RunFolderError if `path` is there and no file: a pipe or a device may never end."""
    if path.exists() and not path.is_file():
        raise RunFolderError(f"{path}: cannot be read: not a file")


def text_of(path: Path) -> str:
    """Return what a file holds. Raises RunFolderError if it cannot be read as text."""
    refuse_other_kinds(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RunFolderError(f"{path}: damaged: not UTF-8 text: byte {error.start}") from None


def json_of(path: Path, text: str | bytes) -> dict[str, Any]:
    """Return the JSON object in `text`, which `path` holds. Raises RunFolderError if it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunFolderError(f"{path}: damaged: not JSON: {str(error)[:100]}") from None
    if not isinstance(found, dict):
        raise RunFolderError(f"{path}: damaged: found {str(found)[:40]} (accepted: a JSON object)")
    return found


def summary_of(run: Path) -> dict[str, Any]:
    """Return the summary of a run that has ended. Raises RunFolderError if it cannot be read, or is not there yet."""
    path = run / "summary.json"
    if not path.exists():
        raise RunFolderError(f"{path}: not there (accepted: the folder of a run that has ended)")
    return json_of(path, text_of(path))


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects of a file, one in each line. Raises RunFolderError if it cannot be read as such."""
    return [json_of(path, line) for line in text_of(path).splitlines()]
