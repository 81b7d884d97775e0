"""Random numbers that code of the user may not use: those of generators that all of a process shares.

What they give depends on all that drew before in the same process, so that a run would have other bits on other hosts,
and after it was resumed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fedactors.errors import ScenarioError


@contextmanager
def undrawn(who: str, accepted: str) -> Iterator[None]:
    """Raise ScenarioError, which says `who` did it and what is `accepted`, if such a generator moves in the context."""
    before = generator_states()
    yield
    after = generator_states()
    if moved := [name for name, state in before.items() if after[name] != state]:
        raise ScenarioError(f"{who}: draws random numbers from {' and '.join(moved)} (accepted: {accepted})")


def generator_states() -> dict[str, Any]:
    """Return the state of each generator, by the name of its module; torch's if it was imported before."""
    legacy = np.random.get_state(legacy=False)  # noqa: NPY002 (it is what is looked at)
    numbers = legacy["state"]
    places = (numbers["pos"], legacy["has_gauss"], legacy["gauss"])
    found: dict[str, Any] = {"random": random.getstate(), "numpy.random": (numbers["key"].tobytes(), places)}
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "get_rng_state"):  # another thread may be importing it
        found["torch"] = torch.get_rng_state().numpy().tobytes()
    return found
