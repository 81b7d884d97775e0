"""Foreign pickles, read without running anything that they name.

A pickle is a program. This reader lets it build plain data (dicts, lists, texts, numbers) and numpy's
scalars, which are rebuilt by two functions of ours, so that a pickle of any numpy version loads under any
other. Every other name is refused before it is looked up.

Python's own `_Unpickler` is used and not the faster one in C, because the latter allocates as much memory as
a damaged byte asks it to.
"""

from __future__ import annotations

import io
import pickle
import struct
from dataclasses import dataclass

from fedactors.traces.source import RecordingFile, shown

_KINDS = {"f8": "d", "f4": "f", "i8": "q", "i4": "i", "i2": "h", "i1": "b", "u8": "Q", "u4": "I", "u1": "B"}


@dataclass
class _Dtype:
    """Stands for `numpy.dtype`: a kind such as "f8", and later its byte order."""

    kind: str
    align: bool = False
    copy: bool = True
    order: str = "<"

    def __setstate__(self, state: tuple[object, ...]) -> None:
        self.order = ">" if state[1] == ">" else "<"


def _scalar(dtype: _Dtype, data: bytes | str) -> float | int:
    """Stand for `numpy.core.multiarray.scalar`."""
    raw = data.encode("latin-1") if isinstance(data, str) else data  # protocol 2 writes bytes as text
    (value,) = struct.unpack(dtype.order + _KINDS[dtype.kind], raw)
    number: float | int = value
    return number


_ALLOWED = {
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "scalar"): _scalar,  # numpy < 2
    ("numpy._core.multiarray", "scalar"): _scalar,  # numpy >= 2
    ("_codecs", "encode"): lambda text, encoding: text.encode("latin-1"),  # bytes of protocol 2
}


class _Restricted(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module[:60]}.{name[:60]}")
        return _ALLOWED[module, name]


def load(source: RecordingFile) -> object:
    """Return the plain data of the pickle. Raises TraceError if it is damaged or names anything else."""
    try:
        return _Restricted(io.BytesIO(source.data)).load()
    except Exception as error:  # the documentation of pickle promises no narrower one for damaged input
        accepted = "a pickle of plain data and numpy scalars"
        found = f"refused: {error}" if isinstance(error, pickle.UnpicklingError) else f"damaged: {shown(error)}"
        raise source.error("", f"pickle {found}", accepted) from error


def is_pickle(data: bytes) -> bool:
    """Whether `data` begins like a pickle of protocol 2 or later."""
    return data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
