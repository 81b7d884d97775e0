"""Columns of whole numbers as text that is small and that a browser reads without a library.

The four bytes of the numbers of a column stand apart (all lowest bytes, then all second ones …), since each of these
rows of bytes is much alike; all of it is compressed by zlib, and written in base64. `packed.js` reads it.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEVEL = 6  # of zlib; 9 takes far longer for a hundredth less
_MOST = 2**31


def packed(columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return columns of whole numbers, each within 32 bits, as what JSON can hold. Raises ValueError if one is not."""
    parts = []
    for name, values in columns.items():
        if len(values) and not -_MOST <= int(values.min()) <= int(values.max()) < _MOST:
            raise ValueError(f"column {name} does not fit 32 bits")
        rows = np.ascontiguousarray(values, dtype="<i4").view(np.uint8).reshape(-1, 4)
        parts.append(np.ascontiguousarray(rows.T).tobytes())
    blob = b64encode(zlib.compress(b"".join(parts), _LEVEL)).decode("ascii")
    return {"columns": [[name, len(values)] for name, values in columns.items()], "blob": blob}
