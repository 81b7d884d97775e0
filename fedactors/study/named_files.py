"""The recordings and data that a scenario names, and digests by which a study identifies them.

Data sets that are published under a name, such as MNIST, are what they are: only what a scenario names by a path of its
own is looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fedactors.clock.recording_paths import locate_all, recordings_of
from fedactors.errors import UsageError
from fedactors.paths import ScenarioPath
from fedactors.run_files.files import digest_of
from fedactors.scenario.model import Scenario

_MOST_BYTES = 1_000_000_000  # of what has one name
_MOST_FILES = 10_000


def file_digests(scenario: Scenario) -> dict[str, str]:
    """Return a SHA-256 of each recording, data file, and file of weights, by what the scenario calls it.

    That of a folder, or of a pattern, is one of names and contents. Beyond 1 GB or 10,000 files it is one of names,
    sizes and times of change, since reading them would take long. What is not there has none; a run says what is
    missing. Raises RunFolderError if a file cannot be read.
    """
    found: dict[str, dict[Path, None]] = {}
    for text, paths in _named(scenario):
        found.setdefault(text, {}).update(dict.fromkeys(paths))
    return {text: _digest(paths) for text, paths in sorted(found.items()) if paths}


def _named(scenario: Scenario) -> Iterator[tuple[str, list[Path]]]:
    """Yield what a scenario calls files and folders, and where they are; those that are there."""
    for group in scenario.population:
        for text in recordings_of(group):
            with suppress(UsageError):
                yield text, locate_all(text, scenario.folder)
    for value in _values(scenario):
        if isinstance(value, ScenarioPath):
            yield value.text, [value.path] if value.path.exists() else []
        elif callable(named := getattr(value, "named_files", None)):
            with suppress(UsageError):
                yield from ((text, [path]) for text, path in named().items())


def _values(value: Any) -> Iterator[Any]:
    """Yield a value and all that are in it."""
    yield value
    inner: Any = ()
    if isinstance(value, BaseModel):
        inner = (getattr(value, name) for name in type(value).model_fields)
    elif isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list | tuple):
        inner = value
    for one in inner:
        yield from _values(one)


def _digest(paths: Iterable[Path]) -> str:
    """Return a digest of files, and of all files in folders."""
    files = [pair for path in paths for pair in _files(path)]
    facts = [(name, file, file.stat()) for name, file in files]
    short = len(files) <= _MOST_FILES and sum(fact.st_size for _, _, fact in facts) <= _MOST_BYTES
    said = [
        (name, _content(file, fact.st_size, fact.st_mtime_ns) if short else f"{fact.st_size} {fact.st_mtime_ns}")
        for name, file, fact in facts
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _files(path: Path) -> list[tuple[str, Path]]:
    """Return files and what they are called: of a folder those in it, by their paths below it."""
    if path.is_dir():
        return [(file.relative_to(path).as_posix(), file) for file in sorted(path.rglob("*")) if file.is_file()]
    return [(path.name, path)] if path.is_file() else []


@cache
def _content(file: Path, size: int, changed: int) -> str:
    """Return the digest of a file's content, read once as long as its size and its time of change are the same."""
    return digest_of(file)[1]
