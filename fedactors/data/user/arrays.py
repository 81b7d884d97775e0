"""Numbers out of what users have: tensors, arrays, images, lists and Python numbers, with one message for all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedactors.data.base import Float32, InputPart
from fedactors.errors import DataError

AnyArray = NDArray[Any]
Integers = Literal["identifiers", "values"]

_ACCEPTED = "accepted: a tensor, an array, an image, a number, or lists of numbers of one shape"
_BITS = "pixels of 8 or 16 bits, or an array of shares"
_EXACT = 2**24  # the integers up to here are exact in float32


def array_of(value: Any, where: str) -> AnyArray:
    """Return a value as an array of numbers or texts. Raises DataError, which begins with `where`, if it is none."""
    if is_frame(value):
        return _of_frame(value, where)
    try:
        found = np.asarray(_plain(value))
    except (ValueError, TypeError, RuntimeError) as error:  # ragged lists; tensors that numpy cannot hold
        text = " ".join(str(error).split())[:150]
        raise DataError(f"{where}: found {_kind(value)}: {text} ({_ACCEPTED})") from None
    if found.dtype.kind not in "biufU":
        kind = _kind(value) if found.dtype.kind == "O" else str(found.dtype)
        raise DataError(f"{where}: found {kind} ({_ACCEPTED})")
    return found


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame, of pandas say."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def columns_of(frame: Any) -> dict[Any, Any]:
    """Return the columns of a data frame by name, each as an array, or as a list where it holds no numbers."""
    return {name: _plain(frame[name]) for name in frame.columns}


def _of_frame(frame: Any, where: str) -> AnyArray:
    """Return a data frame as an array `(rows, columns)`. Raises DataError if a column holds no numbers."""
    columns = {name: array_of(column, f'{where}, column "{name}"') for name, column in columns_of(frame).items()}
    text = next((name for name, column in columns.items() if column.dtype.kind == "U"), None)
    if text is not None:
        raise DataError(f'{where}, column "{text}": found text (accepted: numbers; or without that column)')
    return np.stack(list(columns.values()), axis=1)


def is_text(value: Any) -> bool:
    """Whether a value is a text, or several."""
    first = value[0] if isinstance(value, (list, tuple)) and value else value
    return isinstance(first, (str, bytes)) or getattr(getattr(value, "dtype", None), "kind", "") in ("U", "S")


def word(value: Any) -> str:
    """Return a name as text, the same for equal values of unlike types: 2 and 2.0, text and its bytes."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def stacked(values: Sequence[Any], where: str, name: str = "") -> AnyArray:
    """Return the values of all samples as one array, `(samples, ...)`. Raises DataError if their shapes differ."""
    said = f", {name}" if name else ""
    arrays = [array_of(value, f"{where} sample {number}{said}") for number, value in enumerate(values)]
    first = arrays[0].shape
    for number, array in enumerate(arrays):
        if array.shape != first:
            raise DataError(
                f"{where} sample {number}{said}: found shape {array.shape}, sample 0 has {first}"
                " (accepted: one shape for all samples; crop or pad them)"
            )
    kinds = {array.dtype.kind for array in arrays}
    if "U" in kinds and len(kinds) > 1:
        raise DataError(f"{where}{said}: found texts and numbers (accepted: one of them)")
    return np.stack(arrays)


def input_part(name: str, array: AnyArray, where: str, integers: Integers) -> tuple[Float32, InputPart]:
    """Return an input of all samples in float32, and what it is; integers but bytes and truth values are identifiers.

    Raises DataError if a value is text, not finite, or an integer too large for float32.
    """
    said = f'input "{name}"' if name else "input"
    if array.dtype.kind == "U":
        raise DataError(f"{where} sample 0, {said}: found text ({_ACCEPTED})")
    integer = array.dtype.kind in "iu" and array.dtype != np.uint8
    if integer and array.size:
        large = (array > _EXACT) | (array < -_EXACT)
        if large.any():
            at = _first(large)
            raise DataError(
                f"{where} sample {at}, {said}: found {array[at][large[at]].flat[0]}, integers are exact"
                f" up to {_EXACT:,} (accepted: smaller identifiers, or floats)"
            )
    found = finite(array, where, said)
    found = found[:, None] if found.ndim == 1 else found
    return found, InputPart(name, found.shape[1:], integer and integers == "identifiers")


def finite(array: AnyArray, where: str, said: str) -> Float32:
    """Return an array in float32. Raises DataError, with the sample, if it holds NaN or an infinite number."""
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        found: Float32 = np.ascontiguousarray(array, dtype=np.float32)
    bad = ~np.isfinite(found)
    if bad.any():
        at = _first(bad)
        raise DataError(f"{where} sample {at}, {said}: found {array[at][bad[at]].flat[0]} (accepted: finite numbers)")
    return found


def _first(bad: NDArray[np.bool_]) -> int:
    """Return the first sample in which something is bad."""
    return int(bad.reshape(len(bad), -1).any(1).argmax())


def _plain(value: Any) -> Any:
    """Return what numpy can read: tensors without their gradients, images as `(channels, height, width)` in [0, 1]."""
    if hasattr(value, "detach"):  # a tensor of torch, which is not imported here
        value = value.detach().cpu()
        return (value.float() if value.is_floating_point() else value).numpy()
    if hasattr(value, "getbands"):  # an image of Pillow
        return pixels(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return _values(value) if hasattr(value, "to_numpy") else value


def _values(column: Any) -> Any:
    """Return the values of a column of pandas; of what is no number as a list, in which numpy sees texts."""
    found = column.to_numpy()
    return found.tolist() if found.dtype.hasobject else found


def pixels(image: Any) -> Float32:
    """Return the pixels of a Pillow image, `(channels, height, width)` in [0, 1]; palettes become colours.

    Raises ValueError if nobody can say which of its values is white.
    """
    if _has_sixteen_bits(image):
        shares: Float32 = np.array(image, dtype=np.float32)[None] / np.float32(65_535)
        return shares
    grey = image.mode in ("1", "L")
    found = np.array(image.convert("L" if grey else "RGB"), dtype=np.float32)
    found /= 255
    upright: Float32 = found[None] if grey else np.ascontiguousarray(found.transpose(2, 0, 1))
    return upright


def eight_bits(image: Any) -> Any:
    """Return a Pillow image with 8 bits for a pixel's value, which can be made grey or coloured. Raises as `pixels`."""
    if not _has_sixteen_bits(image):
        return image
    from PIL import Image

    return Image.fromarray(np.rint(np.array(image, dtype=np.float32) / 257).astype(np.uint8))


def _has_sixteen_bits(image: Any) -> bool:
    """Whether a Pillow image has 16 bits for a pixel's value: Pillow itself would make all above 255 white.

    Raises ValueError if it has more, of which the range is not known.
    """
    if image.mode == "I" and getattr(image, "format", None) in ("PNG", "PPM"):
        return True  # in the file; Pillow has them in 32 bits
    if image.mode in ("I", "F"):
        raise ValueError(f"pixels of mode {image.mode}, whose range is not known (accepted: {_BITS})")
    return bool(image.mode.startswith("I;16"))


def _kind(value: Any) -> str:
    """Return what a value is, for messages."""
    return f'"{value[:40]}"' if isinstance(value, str) else "None" if value is None else type(value).__name__
