"""Quantities with units, as integers: "90s" -> ns, "2 MB/s" -> bytes per second, "5 MB" -> bytes, "2 J" -> picojoules.

Decimal fractions are exact (they go through `Fraction`, never through a float). A bare number is refused, except 0:
what it counts would be a guess.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from fedactors.plan import NEVER

NONE_IS_NULL = BeforeValidator(lambda value: None if value == "none" else value)  # of quantities that may be absent

DURATIONS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
}
_DURATION_WORDS = {
    "ns": "ns", "us": "us", "µs": "us", "ms": "ms", "s": "s", "sec": "s", "second": "s", "seconds": "s",
    "m": "min", "min": "min", "minute": "min", "minutes": "min", "h": "h", "hour": "h", "hours": "h",
    "d": "d", "day": "d", "days": "d", "week": "week", "weeks": "week",
}  # fmt: skip
_SIZES = {
    "b": Fraction(1), "kb": Fraction(10**3), "mb": Fraction(10**6), "gb": Fraction(10**9), "tb": Fraction(10**12),
    "kib": Fraction(2**10), "mib": Fraction(2**20), "gib": Fraction(2**30),
    "bit": Fraction(1, 8), "kbit": Fraction(10**3, 8), "mbit": Fraction(10**6, 8), "gbit": Fraction(10**9, 8),
}  # fmt: skip
_ENERGIES = {
    "pj": 1, "nj": 10**3, "uj": 10**6, "µj": 10**6, "mj": 10**9, "j": 10**12, "kj": 10**15,
    "mwh": 3_600 * 10**9, "wh": 3_600 * 10**12,
}  # fmt: skip
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_QUANTITY = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([^\d\s].*?)\s*", re.DOTALL)


def duration(text: object) -> int:
    """Return the nanoseconds of "90s", "1.5 h", "200 ms" or 0.

    Raises ValueError if it is anything else, not a whole number of nanoseconds, or beyond 146 years.
    """
    number, unit = _quantity(text, 'a duration such as "90s", "5 min" or "2 days"')
    word = _DURATION_WORDS.get(unit.lower())
    if word is None and number:
        raise ValueError(f'"{unit}" is not a unit of time (accepted: {", ".join(DURATIONS)}, weeks)')
    ns = number * (7 * DURATIONS["d"] if word == "week" else DURATIONS.get(word or "s", 1))
    return _whole(ns, text, "nanoseconds")


def rate(text: object) -> int:
    """Return the bytes per second of "2 MB/s", "16 Mbit/s" or "16 Mbps".

    Raises ValueError if it is anything else, or less than one byte per second.
    """
    number, unit = _quantity(text, 'a rate such as "2 MB/s" or "16 Mbit/s"')
    per_second = unit.lower().replace(" ", "").replace("bps", "bit/s")
    name = per_second.removesuffix("/s")
    if number and (name == per_second or name not in _SIZES):
        raise ValueError(f'"{unit}" is not a rate (accepted: kB/s, MB/s, GB/s, kbit/s, Mbit/s, Gbit/s)')
    value = int(number * _SIZES.get(name, 0))
    if value < 1:
        raise ValueError(f'"{text}" must be at least one byte per second')
    if value >= NEVER:
        raise ValueError(f'"{text}" is too large')
    return value


def size(text: object) -> int:
    """Return the bytes of "5 MB" or "2 GiB". Raises ValueError if it is anything else."""
    number, unit = _quantity(text, 'a size such as "5 MB" or "2 GiB"')
    factor = _SIZES.get(unit.lower())
    if factor is None and number:
        raise ValueError(f'"{unit}" is not a size (accepted: B, kB, MB, GB, KiB, MiB, GiB)')
    return _whole(number * (factor or 1), text, "bytes")


def work(text: object) -> int:
    """Return the floating-point operations of "300 MFLOP". Raises ValueError if it is anything else."""
    number, unit = _quantity(text, 'a number of operations such as "300 MFLOP"')
    prefix = unit.lower().removesuffix("s").removesuffix("flop").strip()
    if number and (not unit.lower().removesuffix("s").endswith("flop") or prefix not in _PREFIXES):
        raise ValueError(f'"{unit}" is not a number of operations (accepted: FLOP, kFLOP, MFLOP, GFLOP, TFLOP)')
    return _positive(number * _PREFIXES.get(prefix, 1), text, "operation")


def speed(text: object) -> int:
    """Return the floating-point operations per second of "5 GFLOP/s". Raises ValueError if it is anything else."""
    number, unit = _quantity(text, 'a speed such as "5 GFLOP/s"')
    name = unit.lower().replace(" ", "").removesuffix("/s")
    prefix = name.removesuffix("flop")
    if number and (not name.endswith("flop") or prefix not in _PREFIXES or not unit.endswith("/s")):
        raise ValueError(f'"{unit}" is not a speed (accepted: FLOP/s, kFLOP/s, MFLOP/s, GFLOP/s, TFLOP/s)')
    return _positive(number * _PREFIXES.get(prefix, 1), text, "operation per second")


def energy(text: object) -> int:
    """Return the picojoules of "2 J", "35 nJ" or "1.5 mWh". Raises ValueError if it is anything else."""
    number, unit = _quantity(text, 'an energy such as "2 J" or "35 nJ"')
    factor = _ENERGIES.get(unit.lower())
    if number and (factor is None or unit == "MJ"):  # a mega that reads as a milli is none
        raise ValueError(f'"{unit}" is not an energy (accepted: pJ, nJ, uJ, mJ, J, kJ, mWh, Wh)')
    return _whole(number * (factor or 1), text, "picojoules")


def show_energy(picojoules: int) -> str:
    """Return an energy in the largest unit that divides it; `energy` reads it back."""
    unit = next(u for u in ("kJ", "J", "mJ", "uJ", "nJ", "pJ") if picojoules % _ENERGIES[u.lower()] == 0)
    return f"{picojoules // _ENERGIES[unit.lower()]} {unit}"


def show_work(number: int) -> str:
    """Return operations in the largest unit that divides them; `work` reads it back."""
    prefix = next(p for p in ("T", "G", "M", "k", "") if number % _PREFIXES[p.lower()] == 0)
    return f"{number // _PREFIXES[prefix.lower()]} {prefix}FLOP"


def show_speed(number: int) -> str:
    """Return a speed in the largest unit that divides it; `speed` reads it back."""
    return f"{show_work(number)}/s"


def show_duration(ns: int) -> str:
    """Return `ns` in the largest unit that divides it: 90_000_000_000 -> "90s"; `duration` reads it back."""
    if ns == 0:
        return "0s"
    unit = next(unit for unit in reversed(DURATIONS) if ns % DURATIONS[unit] == 0)
    if unit == "min" and ns < 120 * 10**9:
        unit = "s"
    return f"{ns // DURATIONS[unit]}{unit}"


def show_rate(bytes_per_second: int) -> str:
    """Return a rate in the largest unit that divides it; `rate` reads it back."""
    return f"{show_size(bytes_per_second)}/s"


def show_size(number: int) -> str:
    """Return a number of bytes in the largest decimal unit that divides it; `size` reads it back."""
    unit = next(u for u in ("TB", "GB", "MB", "kB", "B") if number % int(_SIZES[u.lower()]) == 0)
    return f"{number // int(_SIZES[unit.lower()])} {unit}"


def _quantity(text: object, accepted: str) -> tuple[Fraction, str]:
    if text == 0 and not isinstance(text, bool):
        return Fraction(0), ""
    if isinstance(text, str) and (match := _QUANTITY.fullmatch(text)):
        return Fraction(match[1]), match[2]
    bare = isinstance(text, (int, float)) or (isinstance(text, str) and re.fullmatch(r"\s*[\d.]+\s*", text))
    problem = "has no unit" if bare and not isinstance(text, bool) else "cannot be read"
    raise ValueError(f"{str(text)[:80]!r} {problem} (accepted: {accepted})")


def _positive(value: Fraction, text: object, what: str) -> int:
    if not 1 <= int(value) < NEVER:
        raise ValueError(f'"{text}" must be at least one {what}')
    return int(value)


def _whole(value: Fraction, text: object, what: str) -> int:
    if value.denominator != 1:
        raise ValueError(f'"{text}" is not a whole number of {what}')
    if value >= NEVER:
        raise ValueError(f'"{text}" is too large')
    return int(value)


def _schema(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [example]})


Duration = Annotated[int, BeforeValidator(duration), PlainSerializer(show_duration, str), _schema("90s")]  # ns
Rate = Annotated[int, BeforeValidator(rate), PlainSerializer(show_rate, str), _schema("2 MB/s")]  # bytes per second
Work = Annotated[int, BeforeValidator(work), PlainSerializer(show_work, str), _schema("300 MFLOP")]  # operations
Speed = Annotated[int, BeforeValidator(speed), PlainSerializer(show_speed, str), _schema("5 GFLOP/s")]  # 1/s
Size = Annotated[int, BeforeValidator(size), PlainSerializer(show_size, str), _schema("5 MB")]  # bytes
Energy = Annotated[int, BeforeValidator(energy), PlainSerializer(show_energy, str), _schema("2 J")]  # picojoules
