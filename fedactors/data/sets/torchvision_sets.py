"""Image data sets of torchvision, from the folders that its own `download=True` makes, and read by its own classes.

FashionMNIST (Xiao et al. 2017), KMNIST (Clanuwat et al. 2018), CIFAR-100 (Krizhevsky 2009), SVHN (Netzer et al. 2011),
STL-10 (Coates et al. 2011; its labelled images). See `mnist`, `emnist`, `cifar` and `celeba` for the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from fedactors.data.base import Info, Int64
from fedactors.data.readers.images import ImageFiles, ImageSource, Pick, UInt8
from fedactors.errors import DataError


class _Published(NamedTuple):
    """What torchvision calls a data set, where it lies, and what its authors say of it."""

    attribute: str
    layout: str
    train: int
    test: int
    shape: tuple[int, int, int]
    counts: tuple[int, ...]

    @property
    def place(self) -> str:
        """The first file or folder, by which it is found."""
        return self.layout.partition("{")[0].rstrip("/")


_IDX = "raw/{train,t10k}-{images-idx3,labels-idx1}-ubyte"
_SVHN = (4948, 13861, 10585, 8497, 7458, 6882, 5727, 5595, 5045, 4659)
_SETS = {
    "fashion_mnist": _Published("FashionMNIST", f"FashionMNIST/{_IDX}", 60_000, 10_000, (1, 28, 28), (6_000,) * 10),
    "kmnist": _Published("KMNIST", f"KMNIST/{_IDX}", 60_000, 10_000, (1, 28, 28), (6_000,) * 10),
    "cifar100": _Published("CIFAR100", "cifar-100-python/{train,test,meta}", 50_000, 10_000, (3, 32, 32), (500,) * 100),
    "svhn": _Published("SVHN", "{train,test}_32x32.mat", 73_257, 26_032, (3, 32, 32), _SVHN),
    "stl10": _Published("STL10", "stl10_binary/{train,test}_{X,y}.bin", 5_000, 8_000, (3, 96, 96), (500,) * 10),
}


class TorchvisionImages(ImageFiles):
    """A data set of torchvision, its pixels in [0, 1]."""

    name: Literal["fashion_mnist", "kmnist", "cifar100", "svhn", "stl10"]

    def published(self) -> Info:
        """Return what its authors say of the data."""
        known = _SETS[self.name]
        return Info(self.name, known.train, known.test, known.shape, len(known.counts), known.counts)

    def accepted(self) -> str:
        """Return the layout that can be read, for messages."""
        return _SETS[self.name].layout

    def sources(self, root: Path) -> Iterator[ImageSource]:
        """Yield the files in `root`, if there are any."""
        known = _SETS[self.name]
        if (root / (known.place or "train_32x32.mat")).exists():
            yield ClassOfTorchvision(known, root)


@dataclass(frozen=True)
class ClassOfTorchvision:
    """What torchvision reads: an `ImageSource`. It compares checksums, where the authors published them."""

    known: _Published
    root: Path

    def labels(self) -> None:
        """Return None: labels are as published."""

    def read(self, pick: Pick, *, train: bool) -> tuple[UInt8, Int64]:
        """Return the picked images `(n, channels, height, width)` and labels `(n,)`.

        Raises DataError if a file is missing or not the original.
        """
        from torchvision import datasets  # imports torch

        by_split = self.known.attribute in ("SVHN", "STL10")
        which: dict[str, Any] = {"split": "train" if train else "test"} if by_split else {"train": train}
        try:
            found = getattr(datasets, self.known.attribute)(self.root, **which)
        except Exception as error:  # torchvision has no errors of its own
            text = " ".join(str(error).split())
            raise DataError(f"{self.root / self.known.layout}: {text}; accepted: the original files") from error
        labels = np.asarray(found.labels if by_split else found.targets).astype(np.int64)
        rows = pick(labels)
        return _upright(np.asarray(found.data), self.known.shape)[rows], labels[rows]


def _upright(images: UInt8, shape: tuple[int, int, int]) -> UInt8:
    """Return images as `(n, channels, height, width)`."""
    if images.ndim == 3:
        return images[:, None]
    return images if images.shape[1:] == shape else images.transpose(0, 3, 1, 2)
