"""LEAF's JSON files: FEMNIST, Shakespeare, and whatever else is written in that format.

Source: Caldas et al., LEAF: A Benchmark for Federated Settings, 2018. A folder has `train` and `test`, with files of
`{"users": [...], "num_samples": [...], "user_data": {USER: {"x": [...], "y": [...]}}}`; a user is one client. Texts are
numbered by LEAF's 80 characters; characters that are not among them become the last number, as in LEAF's own reader,
where they are -1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedactors.data.user.arrays import AnyArray, array_of, is_text
from fedactors.data.user.parts import RawParts
from fedactors.data.user.raw_part import RawPart
from fedactors.data.user.samples import Keys
from fedactors.data.user.user_data import UserData, stamp
from fedactors.errors import DataError
from fedactors.paths import ScenarioPath

LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
_CODES = {letter: number for number, letter in enumerate(LETTERS)}
_FORM = '"users" and "user_data" with x and y of each, as LEAF writes them'
UserSamples = dict[str, tuple[AnyArray, AnyArray]]  # samples and labels, by user


class LeafData(UserData):
    """Data in the format of LEAF, one user after the other: `shape: [1, 28, 28]` for FEMNIST."""

    name: Literal["leaf"] = "leaf"
    path: ScenarioPath
    """Folder with `train`, `test` and perhaps `validation`, each with files `*.json`."""

    def called(self) -> str:
        """Return the folder."""
        return str(self.path)

    def _stamps(self) -> tuple[Any, ...]:
        return stamp(self.path.path)

    def _read(self, keys: Keys, seed: int) -> RawParts:
        if keys.owner or keys.owner_of:
            raise DataError("task.partition.by: LEAF's data come by user (accepted: natural without by)")
        has_validation = (self.path.path / "validation").is_dir()
        validation = self._part("validation") if has_validation else None
        return RawParts(self._part("train"), self._part("test"), validation)

    def _part(self, which: str) -> RawPart:
        folder = self.path.path / which
        files = sorted(folder.glob("*.json"))
        if not files:
            raise DataError(f"leaf: {folder} has no .json file (accepted: train and test below path, from LEAF)")
        found, of_text = _samples(files)
        if not found:
            raise DataError(f"leaf: {folder}: no user has a sample (accepted: at least one)")
        _check_shapes(found, folder)
        owners = np.repeat(list(found), [len(y) for _, y in found.values()])
        x, y = (np.concatenate([parts[which] for parts in found.values()]) for which in (0, 1))
        return RawPart((("", x),), y, None, owners, len(LETTERS) if of_text else None)


def _samples(files: list[Path]) -> tuple[UserSamples, bool]:
    """Return samples and labels of each user that has any, and whether labels are texts.

    Raises DataError if a file cannot be read, or a user is in two files.
    """
    found: UserSamples = {}
    of_text = False
    for file in files:
        for user, x, y in _users(file):
            if user in found:
                raise DataError(f'{file}: the user "{user}" is in another file too (accepted: once)')
            of_text |= is_text(y)
            if len(y):
                found[user] = _numbers(x, y, f'{file}: user "{user}"')
    return found, of_text


def _check_shapes(found: UserSamples, folder: Path) -> None:
    """Raise DataError if samples of two users differ in their shapes."""
    shapes = {x.shape[1:]: user for user, (x, _) in found.items()}
    if len(shapes) > 1:
        (first, one), (second, other) = list(shapes.items())[:2]
        raise DataError(
            f'{folder}: samples of the user "{one}" have the shape {first}, of "{other}" {second} (accepted: one)'
        )


def _users(file: Path) -> list[tuple[str, Any, Any]]:
    """Return each user of a file with its samples and labels. Raises DataError if it is not of LEAF's form."""
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file} cannot be read: {' '.join(str(error).split())[:200]}") from error
    try:
        users = [(str(user), content["user_data"][user]) for user in content["users"]]
        return [(user, data["x"], data["y"]) for user, data in users]
    except (KeyError, TypeError) as error:
        raise DataError(f"{file}: found no {error} (accepted: {_FORM})") from error


def _numbers(x: Any, y: Any, where: str) -> tuple[AnyArray, AnyArray]:
    """Return samples and labels of a user as numbers."""
    inputs, labels = (_codes(part, f"{where}, {name}") for name, part in (("x", x), ("y", y)))
    if inputs.ndim < 1 or labels.ndim < 1 or len(inputs) != len(labels):
        raise DataError(f"{where}: {inputs.shape[:1]} samples but {labels.shape[:1]} labels (accepted: as many)")
    return inputs, labels


def _codes(values: Any, where: str) -> AnyArray:
    """Return numbers as they are, and texts as the numbers of their characters."""
    if not is_text(values):
        return array_of(values, where)
    lengths = {len(text) for text in values if isinstance(text, str)}
    if len(lengths) != 1 or not all(isinstance(text, str) for text in values):
        raise DataError(f"{where}: texts of {len(lengths)} lengths (accepted: texts of one length)")
    found = np.array([[_CODES.get(letter, len(LETTERS) - 1) for letter in text] for text in values], dtype=np.int64)
    return found[:, 0] if found.shape[1] == 1 else found
