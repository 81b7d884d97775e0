"""Folders of images, one folder for each label, as torchvision's ImageFolder reads them.

dataset: {name: image_folder, path: birds, size: 64}      # birds/train/robin/1.jpg, birds/test/robin/7.jpg
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PositiveInt

from fedactors.data.user.arrays import eight_bits, pixels
from fedactors.data.user.held_back import held_back
from fedactors.data.user.parts import RawParts
from fedactors.data.user.raw_part import RawPart
from fedactors.data.user.samples import Keys, owner_column
from fedactors.data.user.user_data import UserData, stamp
from fedactors.errors import DataError
from fedactors.paths import ScenarioPath


class ImageFolderData(UserData):
    """Images in folders that are called as their labels; pixels are in [0, 1]."""

    name: Literal["image_folder"] = "image_folder"
    path: ScenarioPath
    """Folder with `train`, `test` and perhaps `validation`; with `test_share` that of the labels' folders."""
    size: PositiveInt | Annotated[tuple[PositiveInt, PositiveInt], Field(strict=False)] | None = None
    """Height and width to which images are resized; one number for both. Not needed if all have the same size."""
    grey: bool = False
    """One channel in place of three."""
    test_share: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """Share of the images that are kept for testing, drawn by the scenario's seed."""

    def called(self) -> str:
        """Return the folder."""
        return str(self.path)

    def _stamps(self) -> tuple[Any, ...]:
        return stamp(self.path.path)

    def _read(self, keys: Keys, seed: int) -> RawParts:
        if keys.owner is not None:
            raise DataError(
                f'task.partition.by: images have no key "{keys.owner}" (accepted: a function of the path of a file,'
                ' below its folder, such as "data.py:client_of")'
            )
        if self.test_share is None:
            train, test = (self._part(self.path.path / which, keys) for which in ("train", "test"))
            validation = self._validation(keys)
        else:
            whole = self._part(self.path.path, keys)
            chosen = held_back(len(whole), self.test_share, whole.owners, seed, self.called())
            train, test = _taken(whole, ~chosen), _taken(whole, chosen)
            validation = None
        parts = RawParts(train, test, validation, self.test_share is not None)
        for which, part in parts.there.items():
            if unknown := sorted({*part.labels.tolist()} - {*train.labels.tolist()}):
                raise DataError(f'{self.path}: no training image is in a folder "{unknown[0]}", {which} images are')
        return parts

    def _validation(self, keys: Keys) -> RawPart | None:
        """Return the images for validation; None if there is no such folder."""
        folder = self.path.path / "validation"
        return self._part(folder, keys) if folder.is_dir() else None

    def _part(self, root: Path, keys: Keys) -> RawPart:
        from torchvision.datasets import ImageFolder  # imports torch

        if not root.is_dir():
            raise DataError(f"image_folder: {root}: no such folder (accepted: train and test in path, or test_share)")
        try:
            found = ImageFolder(root)
        except (FileNotFoundError, OSError) as error:
            text = " ".join(str(error).split())
            raise DataError(f"image_folder: {root}: {text} (accepted: a folder of images for each label)") from error
        files = [Path(file) for file, _ in found.samples]
        images = [self._pixels(file) for file in files]
        for file, image in zip(files, images, strict=True):
            if image.shape != images[0].shape:
                raise DataError(
                    f"{file}: {image.shape[1]} x {image.shape[2]} pixels, {files[0].name} has {images[0].shape[1]} x"
                    f" {images[0].shape[2]} (accepted: size: N, to which all are resized)"
                )
        owners = [keys.owner_of(str(file.relative_to(root))) for file in files] if keys.owner_of else None
        names = np.array([found.classes[label] for _, label in found.samples])
        return RawPart((("", np.stack(images)),), names, None, owner_column(owners, str(root)))

    def _pixels(self, file: Path) -> Any:
        from PIL import Image

        try:
            with Image.open(file) as opened:
                image = eight_bits(opened).convert("RGB")
        except (OSError, SyntaxError, ValueError) as error:  # Pillow raises what its decoders do
            raise DataError(f"{file} cannot be read: {' '.join(str(error).split())[:200]}") from error
        image = image.convert("L") if self.grey else image
        if self.size is not None:
            height, width = (self.size, self.size) if isinstance(self.size, int) else self.size
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        return pixels(image)


def _taken(part: RawPart, chosen: Any) -> RawPart:
    inputs = tuple((name, array[chosen]) for name, array in part.inputs)
    owners = None if part.owners is None else part.owners[chosen]
    return RawPart(inputs, part.labels[chosen], None, owners)
