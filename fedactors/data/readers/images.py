"""Image data sets that come as files: which are there, how many samples they hold, and their pixels.

A data set in files may be laid out in several ways (`ImageSource`). Sizes are known from labels, which are cheap
to read; pixels are decoded only when the data are loaded. See `emnist` and `cifar`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from fedactors.data.base import Data, Float32, Info, Int64, verified
from fedactors.data.sets.mnist import VARIABLE
from fedactors.errors import DataError
from fedactors.home import data_root
from fedactors.options import Options
from fedactors.paths import PathText

UInt8 = NDArray[np.uint8]
Pick = Callable[[Int64], Int64]  # from all labels to the rows that are wanted, in ascending order


class ImageSource(Protocol):
    """One layout of a data set's files, found on disk."""

    def labels(self) -> tuple[Int64, Int64] | None:
        """Return all training and all test labels, or None if they are as published and costly to read.

        Raises DataError if a file cannot be read.
        """
        ...

    def read(self, pick: Pick, *, train: bool) -> tuple[UInt8, Int64]:
        """Return the picked rows: pixels `(n, channels, height, width)`, upright, and labels `(n,)`.

        Raises DataError if a file cannot be read.
        """
        ...


class ImageFiles(Options):
    """Options and behaviour that image data sets in files share; the subclass knows layouts and sizes."""

    name: str
    root: PathText | None = None
    """Folder of the files; if not given, the environment variable FEDACTORS_DATA names it."""
    train_limit: PositiveInt | None = None
    """Train on the first so many training images only."""
    test_limit: PositiveInt | None = None
    """Test on the first so many test images only."""

    def published(self) -> Info:
        """Return what its authors say of the whole data set."""
        raise NotImplementedError

    def kept(self) -> int:
        """Return how many labels are kept, the first ones."""
        return self.published().classes

    def accepted(self) -> str:
        """Return the layouts that can be read, for messages."""
        raise NotImplementedError

    def sources(self, root: Path) -> Iterator[ImageSource]:
        """Yield the layouts found in `root`, the best one first."""
        raise NotImplementedError

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes and shapes; they depend on neither argument.

        No pixel is read. Where there are no files, the data are taken to be as published: they can be
        simulated without being there. Raises DataError if labels cannot be read, or only files could tell.
        """
        source = self._found()
        labels = source.labels() if source else None
        if labels is None:
            return self._announced()
        train, test = labels
        rows, test_size = self._train_rows(train), len(self._test_rows(test))
        counts = tuple(np.bincount(train[rows], minlength=self.kept()).tolist())
        shape = self.published().input_shape
        return Info(self.name, len(rows), test_size, shape, self.kept(), counts, tests_by_seed=False)

    def check(self) -> None:
        """Look for the files. Raises DataError if they are not there."""
        self._source()

    def load(self, seed: int, clients: int) -> Data:
        """Return the images in [0, 1], the same whatever the arguments.

        Raises DataError if a file is missing, cannot be read, or is not what `info` says.
        """
        source = self._source()
        x, y = source.read(self._train_rows, train=True)
        test_x, test_y = source.read(self._test_rows, train=False)
        data = Data(_scaled(x), y, _scaled(test_x), test_y, classes=self.kept())
        return verified(data, self.info(seed, clients))

    def _announced(self) -> Info:
        """Return the published sizes, cut as the options say."""
        whole, kept = self.published(), self.kept()
        counts = whole.class_counts
        if counts is None and kept < whole.classes:
            raise DataError(f'"{self.name}": only its files tell how large {kept} labels are; {self._ways()}')
        test_size = whole.test_size * kept // whole.classes  # test sets are balanced where counts are known
        train_size = whole.train_size if counts is None else sum(counts[:kept])
        shorter = self.train_limit is not None and self.train_limit < train_size
        return Info(
            self.name,
            min(train_size, self.train_limit or train_size),
            min(test_size, self.test_limit or test_size),
            whole.input_shape,
            kept,
            None if counts is None or shorter else counts[:kept],
            tests_by_seed=False,
        )

    def _train_rows(self, labels: Int64) -> Int64:
        return self._rows(labels, self.train_limit)

    def _test_rows(self, labels: Int64) -> Int64:
        return self._rows(labels, self.test_limit)

    def _rows(self, labels: Int64, limit: int | None) -> Int64:
        """Return the rows whose labels are kept, the first `limit` of them."""
        last = self.published().classes - 1
        if len(labels) and not (labels.min() >= 0 and labels.max() <= last):
            found = f"labels from {labels.min()} to {labels.max()}"
            raise DataError(f'data set "{self.name}": found {found}, accepted 0 to {last}')
        return np.flatnonzero(labels < self.kept())[:limit]

    def _found(self) -> ImageSource | None:
        given = data_root(self.root)
        return next(self.sources(Path(given).expanduser()), None) if given else None

    def _source(self) -> ImageSource:
        source = self._found()
        if source is None:
            given = data_root(self.root)
            where = f"{given} has none of its files" if given else "no folder given"
            raise DataError(f"{self.name}: {where}; {self._ways()}")
        return source

    def _ways(self) -> str:
        return (
            f'set "root" of the data set or the environment variable {VARIABLE} to a folder with {self.accepted()}'
            f", or fetch it: fedactors data fetch {self.name}"
        )


def _scaled(pixels: UInt8) -> Float32:
    scaled = pixels.astype(np.float32)
    scaled /= 255  # in place: there may be gigabytes
    return scaled
