"""Files that a command writes at its end are looked at before it begins: what it does until then may take hours."""

from __future__ import annotations

import os
from pathlib import Path

from fedactors.errors import UsageError
from fedactors.extras import needed

_PICTURES = (".png", ".pdf", ".svg")


def refuse_unwritable(option: str, path: str | Path, made: Path | None = None) -> None:
    """Raise UsageError if no file can be written to `path`, which `option` names.

    `made` is a folder that the command makes before it writes: it need not be there yet.
    """
    folder = Path(path).parent
    why = ""
    if Path(path).is_dir():
        why = "it is a folder (accepted: a file)"
    elif made is not None and folder.resolve() == made.resolve() and not made.exists():
        return
    elif not folder.is_dir():
        why = f"no folder {folder} (accepted: a file in a folder that is there)"
    elif not os.access(folder, os.W_OK | os.X_OK):
        why = f"nothing can be written into the folder {folder}"
    if why:
        raise UsageError(f"{option} {path}: cannot be written: {why}")


def refuse_undrawable(option: str, path: str, made: Path) -> None:
    """Raise UsageError if matplotlib cannot draw a picture into `path`; arguments as for `refuse_unwritable`."""
    if Path(path).suffix.lower() not in _PICTURES:
        raise UsageError(f"{option} {path} (accepted: a file that ends in .png, .pdf or .svg)")
    refuse_unwritable(option, path, made)
    needed("matplotlib", "notebook")


def folder_made(path: Path) -> Path:
    """Return the folder `path`, which is made if it is not there. Raises UsageError if that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be made: {error.strerror}") from None
    return path
