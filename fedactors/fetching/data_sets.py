"""Data sets: those of torchvision by its own code, with its own checksums; MovieLens by pooch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedactors.errors import UsageError
from fedactors.fetching.downloads import PATIENCE, TRIES, download, patient, reason, unzip

_CLASSES: dict[str, tuple[str, tuple[dict[str, Any], ...]]] = {  # torchvision's class, and the parts that are fetched
    "mnist": ("MNIST", ({},)),
    "fashion_mnist": ("FashionMNIST", ({},)),
    "kmnist": ("KMNIST", ({},)),
    "emnist": ("EMNIST", ({"split": "balanced"},)),  # the archive has all splits
    "cifar10": ("CIFAR10", ({},)),
    "cifar100": ("CIFAR100", ({},)),
    "svhn": ("SVHN", ({"split": "train"}, {"split": "test"})),
    "stl10": ("STL10", ({"split": "train"},)),
    "celeba": ("CelebA", ({},)),
}
_MOVIELENS = {"movielens-1m": "ml-1m", "movielens-100k": "ml-100k"}
_MOST_TRIES = 4 * TRIES  # a set has up to four files
_GROUPLENS = "https://files.grouplens.org/datasets/movielens"


def fetch_data(
    name: str, folder: Path, mirror: str | None = None, tell: Callable[[str], None] = print, patience: float = PATIENCE
) -> None:
    """Fetch a data set into `folder`, in the layout in which scenarios look for it there.

    A `mirror` is an address below which the files of a torchvision data set lie in a folder of the name of its class,
    and MovieLens' archives in `movielens`. Raises UsageError if a file cannot be had, or is not what it should be.
    """
    if name in _MOVIELENS:
        _movielens(
            _MOVIELENS[name], folder, f"{mirror.rstrip('/')}/movielens" if mirror else _GROUPLENS, tell, patience
        )
        return
    attribute, parts = _CLASSES[name]
    tell(f"{name}: torchvision's {attribute}, which compares checksums (MD5)")
    from torchvision import datasets  # imports torch

    kind = getattr(datasets, attribute)
    kind = _mirrored(kind, mirror.rstrip("/")) if mirror else kind
    for part in parts:
        _by_torchvision(name, kind, folder, part, patience)


def _by_torchvision(name: str, kind: Any, folder: Path, part: dict[str, Any], patience: float) -> None:
    """Have torchvision fetch a part; what it has already and is whole is not fetched again. Raises UsageError."""
    before = ""
    same = 0
    for _ in range(_MOST_TRIES):
        try:
            with patient(patience):
                kind(folder, **part, download=True)
            return
        except Exception as error:  # torchvision has no errors of its own
            same = same + 1 if reason(error) == before else 1  # another file may have failed than before
            before = reason(error)
            if same == TRIES or isinstance(error, ImportError):
                break
    raise UsageError(f"{name}: not fetched: {before} (by torchvision, into {folder})")


def _mirrored(kind: Any, mirror: str) -> Any:
    """Return a class of torchvision with other addresses. Raises UsageError if it has none that can be changed."""
    base = f"{mirror}/{kind.__name__}/"
    changed: dict[str, Any] = {}
    if hasattr(kind, "mirrors"):
        changed["mirrors"] = [base]
    if getattr(kind, "url", ""):
        changed["url"] = base + kind.url.rpartition("/")[2]
    if hasattr(kind, "split_list"):
        changed["split_list"] = {
            split: [base + url.rpartition("/")[2], *rest] for split, (url, *rest) in kind.split_list.items()
        }
    if not changed:
        raise UsageError(f"{kind.__name__}: lies on Google Drive (accepted: without --mirror)")
    return type(kind.__name__, (kind,), changed)


def _movielens(name: str, folder: Path, address: str, tell: Callable[[str], None], patience: float) -> None:
    path = folder / f"{name}.zip"
    tell(f"{name}: {address}/{path.name} (its SHA-256 is not known; the archive's own checksums are compared)")
    download(f"{address}/{path.name}", path, "", patience)
    unzip(path, folder)
