"""The IDX format of MNIST and EMNIST: 0 0 type rank, big-endian lengths, data; plain or gzipped.

torchvision reads only unpacked files; EMNIST's authors distribute packed ones, and these are read as well.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from math import prod
from pathlib import Path

import numpy as np

from fedactors.data.readers.images import UInt8
from fedactors.errors import DataError

_BYTES = 8  # the type code of unsigned bytes


def packed_or_not(path: Path) -> Path | None:
    """Return `path`, or `path` with `.gz`, whichever is a file."""
    packed = path.with_name(path.name + ".gz")
    return next((candidate for candidate in (path, packed) if candidate.is_file()), None)


def read(path: Path, rank: int) -> UInt8:
    """Return an array of bytes with `rank` axes. Raises DataError if the file is not one."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    accepted = f"IDX, unsigned bytes with {rank} axes (magic number {_magic(rank)})"
    start = 4 + 4 * rank
    if len(content) < start:
        raise DataError(f"{path}: found {len(content)} bytes, accepted: {accepted}")
    magic, *shape = struct.unpack(f">{1 + rank}I", content[:start])
    if magic != _magic(rank):
        raise DataError(f"{path}: found magic number {magic}, accepted: {accepted}")
    if len(content) != start + prod(shape):
        raise DataError(f"{path}: found {len(content):,} bytes, accepted: {start + prod(shape):,}, as its header says")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _magic(rank: int) -> int:
    return _BYTES * 256 + rank  # 2049 for labels, 2051 for images
