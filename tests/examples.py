"""How many examples Hypothesis draws: a third of what a law is worth in `make test`, all in `make test-drawn`."""

import os

from hypothesis import settings

ALL = os.environ.get("FEDACTORS_EXAMPLES") == "all"
USUAL = 100


def share(count):
    """Return how many of `count` examples are drawn in this run of the tests."""
    return count if ALL else max(5, count // 3)


def drawn(count):
    """Return the settings of a test that draws `count` examples when all are drawn."""
    return settings(max_examples=share(count), deadline=None)
