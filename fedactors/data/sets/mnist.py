"""MNIST, read by torchvision from the folder that torchvision's own `download=True` makes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import PositiveInt

from fedactors.data.base import Data, Float32, Info, Int64, verified
from fedactors.errors import DataError
from fedactors.home import data_root
from fedactors.options import Options
from fedactors.paths import PathText

VARIABLE = "FEDACTORS_DATA"
_FILES = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
_TRAIN_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
_SIDE = 28


class Mnist(Options):
    """Handwritten digits, 28 x 28 pixels in [0, 1]: 60,000 and 10,000 images (LeCun et al. 1998)."""

    name: Literal["mnist"] = "mnist"
    root: PathText | None = None
    """Folder that contains `MNIST/raw`; if not given, the environment variable FEDACTORS_DATA names it."""
    pool: Literal[1, 2, 4] = 1
    """Replace squares of this many pixels on a side by their mean; 2 makes images of 14 x 14."""
    test_limit: PositiveInt | None = None
    """Test on the first so many test images only."""

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes and shapes; they depend on neither argument, and no file is opened."""
        side = _SIDE // self.pool
        test_size = min(10_000, self.test_limit or 10_000)
        return Info("mnist", 60_000, test_size, (1, side, side), 10, _TRAIN_COUNTS, tests_by_seed=False)

    def check(self) -> None:
        """Look for the four files. Raises DataError if one is missing."""
        self._folder()

    def load(self, seed: int, clients: int) -> Data:
        """Return the images, the same whatever the arguments.

        Raises DataError if a file is missing, cannot be read, or is not MNIST's.
        """
        x, y = self._read(train=True, limit=None)
        test_x, test_y = self._read(train=False, limit=self.test_limit)
        return verified(Data(x, y, test_x, test_y, classes=10), self.info(seed, clients))

    def _read(self, *, train: bool, limit: int | None) -> tuple[Float32, Int64]:
        from torchvision.datasets import MNIST  # imports torch

        root = self._folder()
        try:
            found = MNIST(root, train=train)
        except Exception as error:  # torchvision has no errors of its own: assertions, struct, value errors
            raise DataError(f"MNIST in {root / 'MNIST' / 'raw'} cannot be read: {error!r}") from error
        images = found.data.numpy()[:limit].astype(np.float32) / 255
        return _pooled(images, self.pool)[:, None], found.targets.numpy()[:limit].astype(np.int64)

    def _folder(self) -> Path:
        """Return the root, in which all four files are."""
        given = data_root(self.root)
        ways = f'set "root" of the data set or the environment variable {VARIABLE} to a folder with MNIST/raw/'
        accepted = f"{ways}{{{', '.join(_FILES)}}}, or fetch it: fedactors data fetch mnist"
        if not given:
            raise DataError(f"mnist: no folder given; {accepted}")
        raw = Path(given).expanduser() / "MNIST" / "raw"
        missing = [name for name in _FILES if not (raw / name).is_file()]
        if missing:
            raise DataError(f"mnist: {raw} has no {', '.join(missing)}; {accepted}")
        return Path(given).expanduser()


def _pooled(images: Float32, size: int) -> Float32:
    """Return means over squares of `size` pixels, `(n, height / size, width / size)`."""
    n, height, width = images.shape
    if size == 1:
        return images
    squares = images.reshape(n, height // size, size, width // size, size)
    means: Float32 = squares.mean(axis=(2, 4), dtype=np.float32)
    return means
