"""What every reader starts from: the bytes of one recording, the error it raises, and the log of its repairs."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fedactors.errors import TraceError
from fedactors.traces.timeline import Repair

UNPACKED = "FEDACTORS_UNPACKED"  # environment variable: how much a gzipped recording may unpack to
_MOST_UNPACKED = 512 * 2**20  # bytes
_PART = 2**24
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class RecordingFile:
    """One recording: where it came from and its bytes, already unpacked if they were gzipped."""

    path: str
    data: bytes

    @property
    def name(self) -> str:
        """The file's name without folder and `.gz`: `ATT-LTE-driving.up`."""
        return Path(self.path).name.removesuffix(".gz")

    @property
    def stem(self) -> str:
        """The file's name without its extension either: `us-east-1a_v100_1`."""
        return Path(self.name).stem

    def error(self, where: str, found: str, accepted: str = "") -> TraceError:
        """Return the error `path: where: found (accepted)`, for the caller to raise."""
        place = f"{self.path}: {where}" if where else self.path
        return TraceError(f"{place}: {found}" + (f" ({accepted})" if accepted else ""))

    def text(self) -> str:
        """Return the recording as text, without a byte order mark. Raises TraceError if it is not UTF-8."""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise self.error(f"line {line}", f"bytes that are no text: {error.reason}", "UTF-8") from error

    def json(self) -> object:
        """Return the recording as JSON. Raises TraceError if it is damaged or an object has one key twice."""
        try:
            return json.loads(self.text(), object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise self.error("", f"damaged JSON: {shown(error, 120)}", "a complete JSON file") from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{shown(name)} stands there twice")
    return result


def load(path: str | Path) -> RecordingFile:
    """Read the whole file at `path`, unpacking gzip, also without the ending .gz.

    Raises TraceError if there is no such file, it is empty, or it cannot be read or unpacked.
    """
    source = RecordingFile(str(path), b"")
    try:
        data = _bytes_of(Path(path), source)
        unpacked = _unpacked(data, source) if data.startswith(_GZIP) else data
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise source.error("", f"damaged gzip: {error}", "a complete gzip file, or the plain file") from error
    except (OSError, ValueError) as error:
        raise source.error("", f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not unpacked:
        raise source.error("", "the file is empty", "a recording")
    return RecordingFile(str(path), unpacked)


def _unpacked(data: bytes, source: RecordingFile) -> bytes:
    """Return what was gzipped, up to a bound: a few MB can unpack to many GB."""
    most = _most_unpacked(source)
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        parts, size = list[bytes](), 0
        while part := file.read(_PART):
            parts.append(part)
            size += len(part)
            if size > most:
                accepted = (
                    f"up to {most:,} bytes, or as many as the environment variable {UNPACKED} says, such as 8 GiB"
                )
                raise source.error("", f"unpacks to more than {most:,} bytes", accepted)
    return b"".join(parts)


def _most_unpacked(source: RecordingFile) -> int:
    told = os.environ.get(UNPACKED, "")
    if not told:
        return _MOST_UNPACKED
    from fedactors.scenario.units import size  # pydantic is heavy; few need it here

    try:
        return size(told)
    except ValueError as error:
        raise source.error("", f"the environment variable {UNPACKED}: {error}") from error


def _bytes_of(path: Path, source: RecordingFile) -> bytes:
    if path.is_dir():
        raise source.error("", "is a folder", "the path of one file")
    if not path.exists():
        raise source.error("", "no such file", "the path of a recording")
    if not path.is_file():  # a pipe or a device may never end
        raise source.error("", "is not a regular file", "the path of one file")
    return path.read_bytes()


def shown(found: object, limit: int = 60) -> str:
    """Return `found` quoted for a message, shortened to about `limit` characters."""
    try:
        text = str(found)
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists
        text = f"a {type(found).__name__} too large to print"
    return repr(text if len(text) <= limit else f"{text[:limit]}…")


def device(name: str, line: int | None = None) -> str:
    """Return the place `device "17", line 203` for a message."""
    short = name if len(name) <= 60 else f"{name[:60]}…"
    return f'device "{short}"' + (f", line {line}" if line is not None else "")


@dataclass
class RepairLog:
    """Counts what a reader repairs; in strict mode every repair is an error."""

    source: RecordingFile
    strict: bool = False
    _found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note(self, kind: str, where: str, detail: str = "", count: int = 1) -> None:
        """Count one more repair of this `kind`. Raises TraceError in strict mode."""
        if self.strict:
            raise self.source.error(where, kind + (f" ({detail})" if detail else ""), "strict: nothing is repaired")
        seen, first = self._found.get(kind, (0, where))
        self._found[kind] = (seen + count, first)

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """All repairs so far, in the order in which each kind came first."""
        return tuple(Repair(kind, count, first) for kind, (count, first) in self._found.items())
