"""Images in Parquet files, as data set hubs serve them: a column of encoded images and a column of labels.

`train-00000-of-00005.parquet` and so on, or `train.parquet`; the image column, `img` or `image`, holds PNG or
JPEG bytes, plain or in a struct with `bytes`. Pillow decodes them; the same Pillow gives the same pixels.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedactors.data.base import Int64
from fedactors.data.readers.images import Pick, UInt8
from fedactors.errors import DataError

_IMAGE_COLUMNS = ("img", "image")
_SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d+)-of-(?P<all>\d+)\.parquet")


@dataclass(frozen=True)
class ParquetImages:
    """Square images in Parquet files: a `Source`."""

    train: tuple[Path, ...]
    test: tuple[Path, ...]
    mode: Literal["L", "RGB"]  # Pillow's names for grey and colour
    side: int  # pixels

    def labels(self) -> tuple[Int64, Int64]:
        """Return training and test labels; no image is read. Raises DataError if a file cannot be read."""
        return _labels(self.train), _labels(self.test)

    def read(self, pick: Pick, *, train: bool) -> tuple[UInt8, Int64]:
        """Return the picked images `(n, channels, side, side)` and labels `(n,)`.

        Raises DataError if a file cannot be read or an image is not of this side.
        """
        files = self.train if train else self.test
        labels = _labels(files)
        rows = pick(labels)
        channels = 1 if self.mode == "L" else 3
        pixels = np.empty((len(rows), channels, self.side, self.side), dtype=np.uint8)
        for number, image in enumerate(self._decoded(files, rows)):
            pixels[number] = image
        return pixels, labels[rows]

    def _decoded(self, files: tuple[Path, ...], rows: Int64) -> Iterator[UInt8]:
        """Yield the images of `rows`, which ascend, opening one file after the other."""
        first = 0
        for path in files:
            last = first + int(_opened(path).metadata.num_rows)
            inside = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last)] - first
            if len(inside):
                yield from self._images(path, inside)
            first = last

    def _images(self, path: Path, rows: Int64) -> Iterator[UInt8]:
        for row, encoded in zip(rows.tolist(), _encoded(path, rows), strict=True):
            try:
                yield _pixels(encoded, self.mode, self.side)
            except Exception as error:  # Pillow raises whatever its decoders do
                accepted = f"a PNG or JPEG image of {self.side} x {self.side} pixels"
                raise DataError(f"{path}, row {row}: {error}; accepted: {accepted}") from error


def found(folders: Iterable[Path], mode: Literal["L", "RGB"], side: int) -> Iterator[ParquetImages]:
    """Yield the Parquet images of each folder that has any.

    Raises DataError if a folder has training but no test files or the reverse, or lacks one of the shards.
    """
    for folder in folders:
        train, test = (_shards(folder, part) for part in ("train", "test"))
        if bool(train) != bool(test):
            there, missing = ("train", "test") if train else ("test", "train")
            raise DataError(f"{folder} has {there}*.parquet but no {missing}*.parquet; accepted: both")
        if train:
            yield ParquetImages(train, test, mode, side)


def _shards(folder: Path, part: str) -> tuple[Path, ...]:
    """Return the files of `part`, in order. Raises DataError if their names say that there are more."""
    names = sorted(path.name for path in folder.glob(f"{part}*.parquet"))
    for shard in filter(None, map(_SHARD.fullmatch, names)):
        digits, count = len(shard["number"]), int(shard["all"])
        wanted = [f"{shard['stem']}-{i:0{digits}}-of-{shard['all']}.parquet" for i in range(count)]
        missing = sorted({*wanted} - {*names})
        if missing:
            raise DataError(f"{folder} has no {', '.join(missing)}; accepted: all {count} files of {part}")
    return tuple(folder / name for name in names)


def _labels(files: tuple[Path, ...]) -> Int64:
    return np.concatenate([_labels_of(path) for path in files])


def _labels_of(path: Path) -> Int64:
    column = _table(path, ["label"]).column("label")
    if column.null_count:
        raise DataError(f"{path}: {column.null_count} rows have no label; accepted: an integer in each")
    try:
        return np.asarray(column.to_numpy()).astype(np.int64, casting="safe")
    except TypeError as error:
        raise DataError(f'{path}: column "label" is {column.type}; accepted: integers') from error


def _encoded(path: Path, rows: Int64) -> list[bytes | None]:
    """Return the bytes of the images in `rows`; None where there are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _table(path, [_image_column(path)]).column(0)
    if pa.types.is_struct(column.type):
        column = pc.struct_field(column, "bytes")
    taken: list[bytes | None] = column.take(pa.array(rows)).to_pylist()
    return taken


def _image_column(path: Path) -> str:
    """Return the column of image bytes, a path within the schema. Raises DataError if there is none."""
    import pyarrow as pa

    schema = _opened(path).schema_arrow
    for name in _IMAGE_COLUMNS:
        kind = schema.field(name).type if name in schema.names else pa.null()
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return name
        if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
            return f"{name}.bytes"
    raise DataError(
        f"{path} has no column of images; found {', '.join(f'{column.name}: {column.type}' for column in schema)}"
        f'; accepted: {" or ".join(_IMAGE_COLUMNS)}, of bytes or of a struct with "bytes"'
    )


def _table(path: Path, columns: list[str]) -> Any:
    """Return a table of `columns`. Raises DataError if the file cannot be read or lacks one."""
    import pyarrow as pa

    file = _opened(path)
    lacking = [name for name in columns if name.partition(".")[0] not in file.schema_arrow.names]
    if lacking:
        found_names = ", ".join(file.schema_arrow.names)
        raise DataError(f"{path} has no column {', '.join(lacking)}; found {found_names}")
    try:
        return file.read(columns=columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _opened(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}; accepted: a Parquet file") from error


def _pixels(encoded: bytes | None, mode: Literal["L", "RGB"], side: int) -> UInt8:
    """Return one image, `(channels, side, side)`."""
    from PIL import Image

    if encoded is None:
        raise ValueError("no image bytes")
    with Image.open(io.BytesIO(encoded)) as image:
        if image.size != (side, side):
            raise ValueError(f"found {image.width} x {image.height} pixels")
        pixels = np.asarray(image.convert(mode))
    return pixels[None] if mode == "L" else pixels.transpose(2, 0, 1)
