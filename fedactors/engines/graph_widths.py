"""For how many rows a CUDA graph is recorded: sizes that few graphs serve, as rows come to the end of their trips."""

from __future__ import annotations

from collections.abc import Sequence

LEAST = 2  # rows: products of matrices have the same bits from two up


def widths(steps: Sequence[int]) -> list[tuple[int, int]]:
    """Return (rows, steps) of each stretch of a trip, from the `steps` of its rows, longest first.

    A stretch has at least two rows, and ends when half of them, rounded up, are all that still move.
    """
    found = list[tuple[int, int]]()
    at = 0
    width = rounded(max(LEAST, len(steps)))
    while at < steps[0]:
        half = rounded(-(-width // 2))
        until = steps[half] if width > LEAST else steps[0]
        if until > at:
            found.append((width, until - at))
            at = until
        width = half
    return found


def rounded(number: int) -> int:
    """Return the next number with at most four significant binary digits."""
    unit = 1 << max(0, number.bit_length() - 4)
    return -(-number // unit) * unit
