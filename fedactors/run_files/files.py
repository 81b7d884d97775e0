"""Reads the files of a run folder, which others may have written or damaged: as plain data, with one set of messages.

A message names the path, what was found there, and what is accepted. Every file is opened by `reading`, which refuses
what is not a regular file: reading a pipe or a device may never end.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from fedactors.errors import FolderAccessError, RunFolderError

SCENARIO = "scenario.yaml"
METRICS = "metrics.jsonl"
SUMMARY = "summary.json"
FAULTS = "faults.jsonl"
RAY_LOG = "ray.log"
STAGES = "stages.parquet"
TIERS = "tiers.parquet"
CHECKPOINT = "checkpoint"

_AT_ONCE = 1 << 20  # bytes that are hashed at a time
_ENDED = "the folder of a run that has ended"
_LARGEST_SCENARIO = 4_000_000  # bytes
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFREG: "a file",
}


def problem(path: Path, found: str, accepted: str = "", line: int | None = None) -> RunFolderError:
    """Return the error that says where something is wrong, what was found, and what is accepted."""
    where = str(path) if line is None else f"{path}, line {line}"
    return RunFolderError(f"{where}: {found}{f' (accepted: {accepted})' if accepted else ''}")


def damaged(path: Path, found: str, accepted: str = "", line: int | None = None) -> RunFolderError:
    """Return the error that says that the content of a file is not what a run writes."""
    return problem(path, f"damaged: {found}", accepted, line)


def kind_of(mode: int) -> str:
    """Return the kind of a file in words, from its `st_mode`."""
    return _KINDS.get(stat.S_IFMT(mode), "a device")


def inaccessible(path: Path, attempt: str, error: OSError) -> FolderAccessError:
    """Return the error that says that the system refused an `attempt`, such as "cannot be read", and why."""
    return FolderAccessError(f"{path}: {attempt}: {error.strerror or error}")


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading. Raises RunFolderError if it is not there, is none, or cannot be read."""
    try:
        with os.fdopen(_descriptor(path), "rb") as file:
            yield file
    except FileNotFoundError:
        raise problem(path, "not there", _ENDED) from None
    except OSError as error:
        raise inaccessible(path, "cannot be read", error) from None


def _descriptor(path: Path) -> int:
    """Return a descriptor of a regular file. Raises RunFolderError if it is of another kind."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # so that opening a pipe does not wait for its writer
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise problem(path, f"found {kind_of(mode)}", "a file")


def refuse_other_kinds(path: Path) -> None:
    """Raise RunFolderError if `path` is not a regular file that can be opened: for libraries that read by name."""
    with reading(path):
        pass


def bytes_of(path: Path, most: int = -1) -> bytes:
    """Return the content of a file, its first `most` bytes if given. Raises RunFolderError if it cannot be read."""
    with reading(path) as file:
        return file.read(most)


def digest_of(path: Path) -> tuple[int, str]:
    """Return how many bytes a file has, and their SHA-256. Raises RunFolderError if it cannot be read."""
    digest = hashlib.sha256()
    size = 0
    with reading(path) as file:
        while part := file.read(_AT_ONCE):
            digest.update(part)
            size += len(part)
    return size, digest.hexdigest()


def text_of(path: Path, most: int | None = None) -> str:
    """Return the content of a file of at most `most` bytes. Raises RunFolderError if it cannot be read as text."""
    content = bytes_of(path) if most is None else bytes_of(path, most + 1)
    if most is not None and len(content) > most:
        raise problem(path, f"more than {most:,} bytes", f"at most {most:,}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise damaged(path, f"not UTF-8 text: byte {error.start}") from None


def scenario_text(run: Path) -> str:
    """Return the YAML of the resolved scenario of a run. Raises RunFolderError if it cannot be read."""
    return text_of(run / SCENARIO, _LARGEST_SCENARIO)


def yaml_of(path: Path, text: str) -> dict[str, Any]:
    """Return the mapping in the YAML `text`, which `path` holds; empty if it is another value.

    Raises RunFolderError if it is not YAML.
    """
    import yaml

    try:
        # libyaml is much faster, and reads some odd characters otherwise
        fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if text.isascii() else yaml.SafeLoader
        found = yaml.load(text, Loader=fast)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise damaged(path, "not YAML", line=mark.line + 1 if mark else None) from None
    except (ValueError, RecursionError):
        raise damaged(path, "not YAML that a run has written") from None
    return found if isinstance(found, dict) else {}


def json_of(path: Path, text: str | bytes, line: int | None = None) -> dict[str, Any]:
    """Return the JSON object in `text`, which `path` holds in its given `line`. Raises RunFolderError if it is none."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise damaged(path, f"not JSON: {error.msg}", line=line or error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"not JSON: {str(error)[:100]}", line=line) from None
    if not isinstance(found, dict):
        raise damaged(path, f"found {str(found)[:40]}", "a JSON object", line)
    return found


def object_of(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file. Raises RunFolderError if it cannot be read as one."""
    return json_of(path, bytes_of(path))


def objects_in(path: Path, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of the first `lines` of a file. Raises RunFolderError if one is none."""
    for number, line in enumerate(lines, start=1):
        yield json_of(path, line, number)


def whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file of JSON objects, without a last one that is being written, or was cut off.

    Raises RunFolderError if the file cannot be read.
    """
    with reading(path) as file:
        for line in file:
            if line.endswith(b"\n") or not line.startswith(b"{"):
                yield line


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects of a file, one in each line. Raises RunFolderError if it cannot be read as such."""
    with reading(path) as file:
        return list(objects_in(path, file))
