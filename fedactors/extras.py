"""Libraries that are not always installed: they belong to extras of the package."""

from __future__ import annotations

import importlib
from typing import Any

from fedactors.errors import UsageError


def needed(library: str, extra: str) -> Any:
    """Return a library. Raises UsageError that says how to install it, if it is not there."""
    try:
        found = importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name is None or not library.startswith(error.name):
            raise  # it is installed, and a library that it needs is not
        found = None
    if getattr(found, "__file__", None) is None:  # a mere folder of that name can be imported too: wandb makes one
        raise UsageError(f"{library} is not installed (accepted: pip install 'fedactors[{extra}]')")
    return found
