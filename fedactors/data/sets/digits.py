"""scikit-learn's bundled handwritten digits: 1,797 images of 8 x 8, at hand without a download."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedactors.data.base import Data, Info, verified
from fedactors.errors import DataError
from fedactors.options import Options

_TRAIN_COUNTS = (142, 146, 141, 147, 144, 146, 145, 143, 139, 144)


class Digits(Options):
    """Handwritten digits, 8 x 8 pixels in [0, 1], cut into 1,437 training and 360 test images.

    Source: Optical Recognition of Handwritten Digits (Alpaydin and Kaynak 1998), bundled with scikit-learn.
    """

    name: Literal["digits"] = "digits"

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes and shapes; they depend on neither argument."""
        return Info("digits", 1437, 360, (1, 8, 8), 10, _TRAIN_COUNTS, tests_by_seed=False)

    def check(self) -> None:
        """Look for nothing: the images come with scikit-learn."""

    def load(self, seed: int, clients: int) -> Data:
        """Return the images; every fifth of each class is a test image, whatever the arguments."""
        images, labels = _bundled()
        by_class = np.argsort(labels, kind="stable")  # writers follow one another: take test images from all of them
        test = np.zeros(len(labels), dtype=bool)
        test[by_class[::5]] = True
        data = Data(images[~test], labels[~test], images[test], labels[test], classes=10)
        return verified(data, self.info(seed, clients))


@cache
def _bundled() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return all images and labels, parsed once in a process; to be read only.

    The file of scikit-learn is read as `load_digits` does, without importing scikit-learn, which takes longer than all.
    """
    package = find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        raise DataError("digits: needs the package scikit-learn (accepted: pip install scikit-learn)")
    path = Path(package.submodule_search_locations[0]) / "datasets/data/digits.csv.gz"
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            table = np.loadtxt(file, delimiter=",")
    except (OSError, ValueError) as error:
        raise DataError(f"digits: {path}: cannot be read: {error} (accepted: scikit-learn, installed anew)") from None
    return (table[:, :-1] / 16).astype(np.float32).reshape(-1, 1, 8, 8), table[:, -1].astype(np.int64)
