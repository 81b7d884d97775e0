"""Foreign pickles, read without running anything that they name.

A pickle is a program. This reader lets it build plain data (dicts, lists, texts, numbers) and numpy's
scalars, which are rebuilt by two functions of ours, so that a pickle of any numpy version loads under any
other. Every other name is refused before it is looked up.

Python's own `_Unpickler` is used and not the faster one in C, because the latter allocates as much memory as
a damaged byte asks it to.

A few bytes can also build what nobody can walk through: lists in lists in lists, or forty tuples that each hold the
one before twice. So the lists, tuples and dicts are counted while they are built, keys are plain, and what was built
is measured, as a tree, before anybody looks at it.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from fedactors.traces.source import RecordingFile, shown

_MOST_CONTAINERS = 2_000_000
_NODES_PER_BYTE = 4  # a reference to something that was stated before takes two bytes
_DEEPEST = 20
_LONG_TEXT = 64
_BITS = 128  # of a whole number
_PLAIN = {int, float, str, bool, bytes, type(None)}
_NESTING = {dict, list, tuple}
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
    """An unpickler of plain data, with a bound on how many containers it builds."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    containers = 0

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module[:60]}.{name[:60]}")
        return _ALLOWED[module, name]


def _counted(build: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return `build`, which makes a container, with the bound on their number."""

    def counted(unpickler: Any) -> None:
        unpickler.containers += 1
        if unpickler.containers > _MOST_CONTAINERS:
            raise pickle.UnpicklingError(f"more than {_MOST_CONTAINERS:,} lists and dicts")
        build(unpickler)

    return counted


def _plain_keys(put: Callable[[Any], None], keys: Callable[[list[Any]], list[Any]]) -> Callable[[Any], None]:
    """Return `put`, which fills a dict, for keys that are numbers or texts: to hash a tuple is to walk through it."""

    def checked(unpickler: Any) -> None:
        if not set(map(type, keys(unpickler.stack))) <= _PLAIN:
            raise pickle.UnpicklingError("it has keys that are neither numbers nor texts")
        put(unpickler)

    return checked


def _only_dtypes(build: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return `build`, which sets attributes, for our stand-ins of numpy's types alone."""

    def checked(unpickler: Any) -> None:
        if not isinstance(unpickler.stack[-2], _Dtype):
            _refused(unpickler)
        build(unpickler)

    return checked


def _refused(unpickler: Any) -> None:
    raise pickle.UnpicklingError("it has sets or instances")


_OPCODES = _Restricted.dispatch
for _opcode in (
    *(pickle.EMPTY_DICT, pickle.DICT, pickle.EMPTY_LIST, pickle.LIST, pickle.TUPLE, pickle.EMPTY_TUPLE),
    *(pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.REDUCE, pickle.BYTEARRAY8),
):
    _OPCODES[_opcode[0]] = _counted(_OPCODES[_opcode[0]])
_OPCODES[pickle.SETITEM[0]] = _plain_keys(_OPCODES[pickle.SETITEM[0]], lambda stack: stack[-2:-1])
for _opcode in (pickle.SETITEMS, pickle.DICT):
    _OPCODES[_opcode[0]] = _plain_keys(_OPCODES[_opcode[0]], lambda stack: stack[::2])
_OPCODES[pickle.BUILD[0]] = _only_dtypes(_OPCODES[pickle.BUILD[0]])
for _opcode in (
    *(pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET),
    *(pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.OBJ, pickle.INST),
):
    _OPCODES[_opcode[0]] = _refused


def load(source: RecordingFile) -> object:
    """Return the plain data of the pickle.

    Raises TraceError if it is damaged, names anything else, or holds more than its bytes can state.
    """
    try:
        content = _Restricted(io.BytesIO(source.data)).load()
        _measure(content, len(source.data))
        return content
    except Exception as error:  # the documentation of pickle promises no narrower one for damaged input
        accepted = "a pickle of plain data and numpy scalars"
        found = f"refused: {error}" if isinstance(error, pickle.UnpicklingError) else f"damaged: {shown(error)}"
        raise source.error("", f"pickle {found}", accepted) from error


def _measure(content: object, size: int) -> None:
    """Refuse what is deeper, larger or longer than recordings of `size` bytes are; shared parts count each time."""
    budget = _NODES_PER_BYTE * size + 1000
    level, depth = [content], 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise pickle.UnpicklingError(f"lists or dicts in one another, more than {_DEEPEST} deep")
        inner: list[object] = []
        for node in level:
            values = _values(node)
            budget -= 1 + len(values) + _text_nodes(values)
            if budget < 0:
                raise pickle.UnpicklingError("it holds more than its bytes can state: parts that are used many times")
            inner += _containers(values)
        level = inner


def _values(node: object) -> Sequence[object]:
    """Return what a container holds; a plain value, itself."""
    if isinstance(node, dict):
        return [*node, *node.values()]
    return node if isinstance(node, (list, tuple)) else (node,)


def _text_nodes(values: Sequence[object]) -> int:
    """Return how many nodes the long texts among `values` count for."""
    if not {str, bytes, bytearray} & set(map(type, values)):
        return 0
    return sum(len(value) for value in values if isinstance(value, (str, bytes, bytearray)) and len(value) > _LONG_TEXT)


def _containers(values: Sequence[object]) -> list[object]:
    """Return the containers among `values`. Raises UnpicklingError at a number that no recording has."""
    kinds = set(map(type, values))
    if int in kinds:
        whole = cast("list[int]", values if kinds == {int} else [value for value in values if type(value) is int])
        longest = max(abs(max(whole)), abs(min(whole))).bit_length()
        if longest > _BITS:
            raise pickle.UnpicklingError(f"a number of {longest * 3 // 10:,} digits")
    return [value for value in values if isinstance(value, (dict, list, tuple))] if kinds & _NESTING else []


def is_pickle(data: bytes) -> bool:
    """Whether `data` begins like a pickle of protocol 2 or later."""
    return data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
