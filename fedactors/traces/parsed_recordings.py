"""Recordings that this process has parsed: studies replay hundreds of scenarios over a few files.

A recording is known by its content, not by its path or time, so that a file that changes is read again. The least
recently used ones are forgotten when the files behind those kept have more than a bound of bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import Any

from fedactors.traces.source import RecordingFile

_MOST = 2**27  # bytes of the files behind all that is kept


class ParsedRecordings:
    """Keeps what was parsed of files, by their content and by what was asked of the reader."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._size = 0
        self._kept = OrderedDict[Hashable, tuple[int, Any]]()

    def get(self, source: RecordingFile, asked: Hashable, parse: Callable[[], Any]) -> Any:
        """Return what `parse` gives for a file and what is `asked` of its reader; `parse` is called where it is new."""
        key = source.path, blake2b(source.data).digest(), asked
        if key not in self._kept:
            found = parse()
            if len(source.data) > self._most:
                return found
            self._kept[key] = len(source.data), found
            self._size += len(source.data)
        self._kept.move_to_end(key)
        while self._size > self._most:
            _, (size, _) = self._kept.popitem(last=False)
            self._size -= size
        return self._kept[key][1]
