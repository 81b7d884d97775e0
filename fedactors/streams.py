"""Named random streams: counter-based, so that no draw depends on earlier draws of other streams.

Every random number of a run comes from `stream(seed, purpose, entity, round)`, but for the order of samples: its
counters have the same names, and those of many clients are worked out in one call, see `fedactors.data.batches`. Two
scenarios that differ in their algorithm only see the same cohorts, the same devices and the same batches; a run
resumed in the middle draws what an unbroken run draws. Nothing in fedactors touches a global generator.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np


class Purpose(IntEnum):
    """What a stream is for. Numbers are part of every digest: append, never renumber."""

    INIT = 1  # initial model
    COHORT = 2  # which clients are asked in a round
    BATCH = 3  # order of a client's samples in its passes
    DROPOUT = 4  # masks of dropout layers
    PARTITION = 5  # which sample lies at which client
    DATASET = 6  # generated data
    SPEED = 7  # spread of compute speed inside a group
    LINK = 8  # spread of bandwidth and latency inside a group
    TRACE = 9  # which recorded trace drives which device
    OFFSET = 10  # where in its trace a device starts
    AVAILABILITY = 11  # synthetic availability
    PARTICIPATION = 12  # sampled participation traces
    SERVER_BATCH = 13  # batches of the server's own data
    CENTRAL_BATCH = 14  # batches of the central learner
    SERVER_DATA = 15  # choice of the server's data
    SIZES = 16  # sizes of the clients' data
    HOLDOUT = 17  # which test sample lies at which client
    LOCAL_OPTIMUM = 18  # batches of a client that trains alone before it leaves
    REALLOCATION = 19  # which sample lies at which active client in a round
    AUGMENTATION = 20  # random transforms of a training sample
    VARIANT = 21  # which of a sample's variants a local step sees
    CLIENT_EVALUATION = 22  # which clients are evaluated after a round
    FINE_TUNING = 23  # batches of a client that is evaluated after steps of its own
    BEHAVIOUR = 24  # what behaviours of devices draw
    REPLACEMENT = 25  # a client's samples in batches that are drawn with replacement
    UPLINK = 26  # what transforms of updates draw at a client in a trip
    DOWNLINK = 27  # what transforms of models draw at the server before a round
    NOISE = 28  # noise that the server adds to a round's sum
    TREE = 29  # noise of the nodes of a tree over rounds
    SECURE_GROUPS = 30  # who is in which group of secure aggregation
    ATTACK = 31  # what an attacker sends in a trip
    VALIDATION = 32  # which test samples are put aside for validation


_WORD = 2**64 - 1
_EMPTY = np.zeros(4, dtype=np.uint64)


class _Nothing(np.random.bit_generator.ISeedSequence):
    """A seed that is overwritten at once: without one, Philox spends 10 us on entropy from the operating system."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return np.zeros(n_words, dtype=np.uint64)


_NOTHING: Any = _Nothing()


def stream(seed: int, purpose: Purpose, entity: int = 0, round: int = 0) -> np.random.Generator:
    """Return the generator of (seed, purpose, entity, round).

    The Philox key is (seed, purpose); entity and round are the high words of its 256-bit counter, so that streams
    of one purpose are 2**128 draws apart and never overlap.
    """
    return Streams(seed, purpose).of(entity, round)


class Streams:
    """The streams of one (seed, purpose), one at a time; `of` takes half the time of `stream`."""

    def __init__(self, seed: int, purpose: Purpose) -> None:
        self._counter = np.zeros(4, dtype=np.uint64)
        key = np.array([seed & _WORD, int(purpose)], dtype=np.uint64)
        self._state: Any = {
            "bit_generator": "Philox",
            "state": {"key": key, "counter": self._counter},
            "buffer": _EMPTY,
            "buffer_pos": len(_EMPTY),
            "has_uint32": 0,
            "uinteger": 0,
        }
        self._bits = np.random.Philox(_NOTHING)
        self._draws = np.random.Generator(self._bits)

    def of(self, entity: int, round: int) -> np.random.Generator:
        """Return the generator of (entity, round); the generator returned before must not be used any more."""
        self._counter[2:] = entity & _WORD, round & _WORD
        self._bits.state = self._state
        return self._draws
