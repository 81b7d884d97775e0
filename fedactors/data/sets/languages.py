"""Two made-up languages over one alphabet: a small stand-in for two corpora of text.

Each language is a Markov chain whose rows are drawn from a symmetric Dirichlet law, the same for all its speakers. The
clients speak one, the central learner has texts of the other. A few characters tell which language a text is in, so one
model can learn both.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveInt

from fedactors.data.base import Data, Info, InputPart, Int64
from fedactors.data.sets.texts import inputs_and_labels
from fedactors.options import Options
from fedactors.streams import Purpose, stream

_FEDERATED = 0  # rounds of the random streams, one for each language
_CENTRAL = 1
_LAW = -1  # entities of the random streams; clients are 0, 1, …
_TEST = -2
_CENTRAL_TRAIN = -3


class Languages(Options):
    """Sequences of two Markov chains: one at the clients, the other with the central learner."""

    name: Literal["languages"] = "languages"
    characters: Annotated[int, Field(ge=2, le=1000)] = 16
    length: PositiveInt = 20
    """Characters of a sample."""
    samples: PositiveInt = 20
    """Samples of each client."""
    central: PositiveInt = 2000
    """Samples of the central learner."""
    test: PositiveInt = 500
    """Test samples of each language."""
    concentration: Annotated[float, Field(gt=0)] = 0.05
    """Of the Dirichlet law of what follows a character; the smaller, the easier to foresee."""

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes and shapes without making anything."""
        sizes = np.full(clients, self.samples, dtype=np.int64)
        shape, total = (self.length,), clients * self.samples
        return Info(
            self.name, total, 2 * self.test, shape, self.characters,
            client_sizes=sizes, label_shape=shape, central_size=self.central,
            inputs=(InputPart("", shape, integer=True),), kind="sequence",
        )  # fmt: skip

    def check(self) -> None:
        """Look for nothing: the texts are made."""

    def load(self, seed: int, clients: int) -> Data:
        """Return the texts; those of one client do not depend on how many others there are."""
        federated = [self.spoken(seed, _FEDERATED, client, self.samples) for client in range(clients)]
        tests = [self.spoken(seed, language, _TEST, self.test) for language in (_FEDERATED, _CENTRAL)]
        x, y = inputs_and_labels(np.concatenate(federated))
        test_x, test_y = inputs_and_labels(np.concatenate(tests))
        central = inputs_and_labels(self.spoken(seed, _CENTRAL, _CENTRAL_TRAIN, self.central))
        bounds, source = np.arange(clients + 1, dtype=np.int64) * self.samples, np.arange(2 * self.test) >= self.test
        return Data(x, y, test_x, test_y, self.characters, bounds, None, *central, source)

    def law(self, seed: int, language: int) -> np.ndarray:
        """Return what follows each character with what chance, `(characters, characters)`."""
        rows = np.full(self.characters, self.concentration)
        return stream(seed, Purpose.DATASET, _LAW, language).dirichlet(rows, size=self.characters)

    def spoken(self, seed: int, language: int, speaker: int, texts: int) -> Int64:
        """Return texts of `length` + 1 characters by one speaker, `(texts, length + 1)`."""
        draws, follows = stream(seed, Purpose.DATASET, speaker, language), self.law(seed, language).cumsum(1)
        found = np.empty((texts, self.length + 1), dtype=np.int64)
        found[:, 0] = draws.integers(self.characters, size=texts)
        for place, uniform in enumerate(draws.random((self.length, texts)), 1):
            found[:, place] = np.minimum((follows[found[:, place - 1]] < uniform[:, None]).sum(1), self.characters - 1)
        return found
