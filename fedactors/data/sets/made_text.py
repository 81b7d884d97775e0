"""A made-up text in letters: words of drawn syllables, by Zipf's law, in sentences. A central corpus without a file."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from pydantic import Field, PositiveInt

from fedactors.options import Options
from fedactors.streams import Purpose, stream

_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_LONGEST = 4  # syllables of a word
_SENTENCE = (4, 12)  # words of a sentence
_LINE = 10  # sentences of a line


class MadeText(Options):
    """Sentences of an invented language, the same for every seed, as a file would be."""

    characters: PositiveInt = 1_000_000
    """Length of the text."""
    words: int = Field(default=2000, ge=10, le=100_000)
    """Words of the language; the k-th is drawn with a chance proportional to 1/k."""

    def text(self) -> str:
        """Return the text."""
        return _written(self.characters, self.words)


@lru_cache(maxsize=2)
def _written(characters: int, words: int) -> str:
    draws = stream(0, Purpose.DATASET)
    known: dict[str, None] = {}  # in order, none twice
    while len(known) < words:
        known["".join(draws.choice(_SYLLABLES, draws.integers(1, _LONGEST + 1)))] = None
    chances = 1 / np.arange(1, words + 1)
    said = draws.choice(list(known), characters // 2, p=chances / chances.sum())  # a word has two letters or more
    sentences = list[str]()
    at = 0
    length = 0
    while length < characters:
        count = int(draws.integers(*_SENTENCE, endpoint=True))
        end = "\n" if len(sentences) % _LINE == _LINE - 1 else " "
        sentences.append(" ".join(said[at : at + count]).capitalize() + "." + end)
        at += count
        length += len(sentences[-1])
    return "".join(sentences)[:characters]
