"""Texts as next-character data: one or more clients' texts, and a central corpus (Augenstein et al., 2022, 5.2).

Folders hold one client per `.txt` file. A single file in the format of plays, as tiny-shakespeare is, has one client
per speaker: blocks parted by blank lines, whose first line is "Name:". Any other file is one client's text.

A text is cut into pieces of `length` + 1 characters that do not overlap: the first `length` are a sample, the last
`length` its labels. Characters are numbered by frequency over all texts, ties by code point; beyond `vocabulary` they
share the last number.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, PositiveInt

from fedactors.data.base import Data, Float32, Info, InputPart, Int64
from fedactors.data.sets.made_text import MadeText
from fedactors.data.sets.mnist import VARIABLE
from fedactors.errors import DataError
from fedactors.home import data_root
from fedactors.options import Options

_SPEAKER = re.compile(r"^([^\n:]{1,60}):\s*$")


class Cut(NamedTuple):
    """All pieces of a scenario, as numbers of characters, `(pieces, length + 1)` each."""

    train: list[Int64]  # one array per client
    test: Int64  # of all clients
    central: Int64
    central_test: Int64
    characters: str


class Texts(Options):
    """Next-character data from plain-text files."""

    name: Literal["texts"] = "texts"
    federated: str
    """A folder of .txt files, one per client, or one file; looked for as it is, then in FEDACTORS_DATA."""
    central: str | MadeText | None = None
    """The central learner's text, of the same forms; or `{characters: N}` of a made-up language."""
    length: PositiveInt = 100
    """Characters of a sample."""
    test_share: float = Field(default=0.1, gt=0.0, lt=1.0)
    """Share of each text's pieces, its last ones, that are for testing; at least one of each."""
    least: PositiveInt = 2
    """Leave out clients with fewer training pieces."""
    vocabulary: PositiveInt | None = None
    """Number of different characters; all if not given."""

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes; the texts are read. Raises DataError if they cannot be."""
        cut = self._cut()
        sizes = np.array([len(pieces) for pieces in cut.train], dtype=np.int64)
        return Info(
            self.name,
            int(sizes.sum()),
            len(cut.test) + len(cut.central_test),
            (self.length,),
            len(cut.characters),
            client_sizes=sizes,
            label_shape=(self.length,),
            central_size=len(cut.central),
            inputs=(InputPart("", (self.length,), integer=True),),
            kind="sequence",
            tests_by_seed=False,
        )

    def check(self) -> None:
        """Look for the files. Raises DataError if one is missing."""
        self.named_files()

    def named_files(self) -> dict[str, Path]:
        """Return the files and folders that are named, by what they are called. Raises DataError if one is missing."""
        return {path: _place(path) for path in (self.federated, self.central) if isinstance(path, str)}

    def load(self, seed: int, clients: int) -> Data:
        """Return the pieces, the same whatever the arguments. Raises DataError if the texts cannot be read."""
        cut = self._cut()
        x, y = inputs_and_labels(np.concatenate(cut.train))
        test_x, test_y = inputs_and_labels(np.concatenate([cut.test, cut.central_test]))
        central_x, central_y = inputs_and_labels(cut.central)
        bounds = np.concatenate([[0], np.cumsum([len(pieces) for pieces in cut.train])]).astype(np.int64)
        source = np.arange(len(test_y)) >= len(cut.test)
        return Data(x, y, test_x, test_y, len(cut.characters), bounds, None, central_x, central_y, source)

    def _cut(self) -> Cut:
        texts = read(_place(self.federated))
        cut = _pieces(texts, self._whole(), self.length, self.test_share, self.least, self.vocabulary)
        if not cut.train:
            raise DataError(
                f"texts: {self.federated}: no text has {self.least} training pieces of {self.length + 1:,} characters"
                f" (the longest of {len(texts)} has {max(map(len, texts), default=0):,}; accepted: a smaller length)"
            )
        return cut

    def _whole(self) -> tuple[str, ...]:
        """Return the central learner's texts."""
        if self.central is None:
            return ()
        return (self.central.text(),) if isinstance(self.central, MadeText) else read(_place(self.central))


def read(path: Path) -> tuple[str, ...]:
    """Return one text per client, ordered by file name or speaker. Raises DataError if a file cannot be read."""
    if path.is_dir():
        texts = tuple(_text(file) for file in sorted(path.glob("*.txt")))
        if not texts:
            raise DataError(f"texts: {path} has no .txt file")
        return texts
    text = _text(path)
    return tuple(said for _, said in sorted(_speakers(text).items())) or (text,)


def _speakers(text: str) -> dict[str, str]:
    """Return what each speaker of a play says, in order; nothing if not every block names one.

    Those whose name stands above an empty block only say nothing, and are left out.
    """
    said: dict[str, list[str]] = {}
    for block in filter(None, (part.strip("\n") for part in re.split(r"\n\s*\n", text))):
        first, _, rest = block.partition("\n")
        named = _SPEAKER.match(first)
        if named is None:
            return {}
        said.setdefault(named[1].strip(), []).append(rest)
    return {speaker: "\n".join(parts) for speaker, parts in said.items() if any(parts)}


@lru_cache(maxsize=4)
def _pieces(
    texts: tuple[str, ...], whole: tuple[str, ...], length: int, share: float, least: int, vocabulary: int | None
) -> Cut:
    counts = Counter("".join(texts))
    counts.update("".join(whole))
    order = sorted(counts, key=lambda character: (-counts[character], character))
    characters = "".join(order[:vocabulary])
    numbers = np.full(max(map(ord, counts), default=0) + 1, len(characters) - 1, dtype=np.int64)
    numbers[[ord(character) for character in characters]] = np.arange(len(characters))

    def cut(text: str) -> tuple[Int64, Int64]:
        codes = numbers[np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)]
        count = len(codes) // (length + 1)
        pieces = codes[: count * (length + 1)].reshape(count, length + 1)
        held = max(1, round(share * count)) if count > 1 else 0
        return pieces[: count - held], pieces[count - held :]

    none = np.empty((0, length + 1), dtype=np.int64)
    clients = [parts for parts in map(cut, texts) if len(parts[0]) >= least]
    central = [cut(text) for text in whole]
    return Cut(
        [train for train, _ in clients],
        np.concatenate([none, *(test for _, test in clients)]),
        np.concatenate([none, *(train for train, _ in central)]),
        np.concatenate([none, *(test for _, test in central)]),
        characters,
    )


def inputs_and_labels(pieces: Int64) -> tuple[Float32, Int64]:
    """Return samples and their labels, `(n, length)` both, from pieces of text `(n, length + 1)`.

    A sample is its piece without the last character; its labels are the piece without the first.
    """
    return pieces[:, :-1].astype(np.float32), np.ascontiguousarray(pieces[:, 1:])


def _place(path: str) -> Path:
    """Return where a text is. Raises DataError if it is nowhere."""
    given = Path(path).expanduser()
    root = data_root(None)
    found = next((place for place in (given, *([Path(root) / given] if root else [])) if place.exists()), None)
    if found is None:
        where = f"nor in {root}" if root else f"and {VARIABLE} names no folder"
        raise DataError(f"texts: {path}: there is no such file or folder, {where}")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"texts: {path} cannot be read: {error}") from error
