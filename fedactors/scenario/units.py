"""Quantities with units, as integers: "90s" -> ns, "2 MB/s" -> bytes per second, "5 MB" -> bytes, "2 J" -> picojoules.

A duration may have several parts, "2h40min", each of a smaller unit than the one before.

Decimal fractions are exact (they go through `Fraction`, never through a float). A bare number is refused, except 0:
what it counts would be a guess. The case of a unit counts where it makes a difference: b is a bit and B a byte. A unit
in another case is read if only one can be meant, and refused if it could be several (`mb/s`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from fedactors.durations import DURATIONS
from fedactors.plan import NEVER

NONE_IS_NULL = BeforeValidator(lambda value: None if value == "none" else value)  # of quantities that may be absent

_WEEK = 7 * DURATIONS["d"]
_UNREADABLE = Fraction(0)  # of a unit that exists, but is never meant: a megasecond
_Factors = Mapping[str, Fraction]


def _factors(units: Mapping[str, int | Fraction]) -> dict[str, Fraction]:
    return {unit: Fraction(factor) for unit, factor in units.items()}


_DURATION_WORDS = _factors(
    {
        **DURATIONS,
        **dict.fromkeys(("µs", "μs"), DURATIONS["us"]),
        **dict.fromkeys(("sec", "second", "seconds"), DURATIONS["s"]),
        **dict.fromkeys(("m", "minute", "minutes"), DURATIONS["min"]),
        **dict.fromkeys(("hour", "hours"), DURATIONS["h"]),
        **dict.fromkeys(("day", "days"), DURATIONS["d"]),
        **dict.fromkeys(("week", "weeks"), _WEEK),
        **dict.fromkeys(("M", "Ms"), _UNREADABLE),  # months or minutes, megaseconds or milliseconds
    }
)
_SCALES = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "ki": 2**10,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_SIZES = _factors(
    {
        f"{scale}{word}": Fraction(factor * bits, 8)
        for scale, factor in _SCALES.items()
        for word, bits in (("B", 8), ("byte", 8), ("bytes", 8), ("b", 1), ("bit", 1), ("bits", 1))
    }
)
_PER_SECOND = re.compile(r"(.*?)\s*(?:/\s*(?:s|sec|second)|(?<=b)ps|(?<=B)ps)", re.DOTALL)
_ENERGIES = _factors(
    {
        "pJ": 1,
        "nJ": 10**3,
        "uJ": 10**6,
        "µJ": 10**6,
        "μJ": 10**6,
        "mJ": 10**9,
        "J": 10**12,
        "kJ": 10**15,
        "mWh": 3_600 * 10**9,
        "Wh": 3_600 * 10**12,
        **dict.fromkeys(("MJ", "MWh"), _UNREADABLE),  # a mega that reads as a milli is none
    }
)
_DURATIONS_ACCEPTED = 'a duration such as "90s", "5 min" or "2h40min"'
_RATES = "accepted: kB/s, MB/s, GB/s for bytes, kbit/s, Mbit/s, Gbit/s for bits"
_BYTES = "accepted: B, kB, MB, GB, KiB, MiB, GiB for bytes, Mbit for bits"
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_QUANTITY = re.compile(
    r"\s*(\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)\s*(?![eE][+-]?\d)([^\d\s.,+-].*?)\s*", re.DOTALL | re.ASCII
)
_PART = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([^\W\d_]+)\s*")  # of a duration of several
_BARE = re.compile(r"\s*(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)


def duration(text: object) -> int:
    """Return the nanoseconds of "90s", "1.5 h", "200 ms", "2h40min" or 0.

    Raises ValueError if it is anything else, not a whole number of nanoseconds, or beyond 146 years.
    """
    number, unit = quantity(text, _DURATIONS_ACCEPTED)
    if any(character.isdigit() for character in unit):
        return _whole(_sum_of_parts(str(text)), text, "nanoseconds")
    return _whole(number * _time_unit(unit) if number else number, text, "nanoseconds")


def _time_unit(unit: str) -> Fraction:
    """Return the nanoseconds of a unit. Raises ValueError if it is none."""
    factor = factor_of(unit, _DURATION_WORDS)
    if not factor:
        either = ": min or ms?" if unit == "M" else ""
        raise ValueError(f'"{unit}" is not a unit of time{either} (accepted: {", ".join(DURATIONS)}, weeks)')
    return factor


def _sum_of_parts(text: str) -> Fraction:
    """Return the nanoseconds of "2h40min". Raises ValueError if its units do not fall, or if it cannot be read."""
    parts = _PART.findall(text)
    if _PART.sub("", text):
        raise ValueError(f"{text[:80]!r} cannot be read (accepted: {_DURATIONS_ACCEPTED})")
    factors = [_time_unit(unit) for _, unit in parts]
    if any(later >= earlier for earlier, later in pairwise(factors)):
        raise ValueError(f"{text[:80]!r}: each unit must be smaller than the one before it (accepted: as in 2h40min)")
    if any("." in number for number, _ in parts[:-1]):
        raise ValueError(f"{text[:80]!r}: a decimal fraction before a smaller unit (accepted: as in 2h40min or 2.5 h)")
    return sum((Fraction(number) * factor for (number, _), factor in zip(parts, factors, strict=True)), Fraction(0))


def rate(text: object) -> int:
    """Return the bytes per second of "2 MB/s", "16 Mbit/s" or "16 Mbps".

    Raises ValueError if it is anything else, or less than one byte per second.
    """
    number, unit = quantity(text, 'a rate such as "2 MB/s" or "16 Mbit/s"')
    match = _PER_SECOND.fullmatch(unit)
    if number and match is None:
        raise ValueError(f'"{unit}" is not a rate ({_RATES})')
    factor = factor_of(match[1], _SIZES, _RATES) if match else _UNREADABLE
    if not factor and number:
        raise ValueError(f'"{unit}" is not a rate ({_RATES})')
    value = int(number * factor)
    if value < 1:
        raise ValueError(f'"{text}" must be at least one byte per second')
    if value >= NEVER:
        raise ValueError(f'"{text}" is too large')
    return value


def size(text: object) -> int:
    """Return the bytes of "5 MB" or "2 GiB". Raises ValueError if it is anything else."""
    number, unit = quantity(text, 'a size such as "5 MB" or "2 GiB"')
    factor = factor_of(unit, _SIZES, _BYTES)
    if not factor and number:
        raise ValueError(f'"{unit}" is not a size ({_BYTES})')
    return _whole(number * factor, text, "bytes")


def work(text: object) -> int:
    """Return the floating-point operations of "300 MFLOP". Raises ValueError if it is anything else."""
    number, unit = quantity(text, 'a number of operations such as "300 MFLOP"')
    name = unit.removesuffix("s").lower()  # FLOPS, with a capital S, are operations per second
    prefix = name.removesuffix("flop").strip()
    if number and (not name.endswith("flop") or prefix not in _PREFIXES):
        raise ValueError(f'"{unit}" is not a number of operations (accepted: FLOP, kFLOP, MFLOP, GFLOP, TFLOP)')
    return _positive(number * _PREFIXES.get(prefix, 1), text, "operation")


def speed(text: object) -> int:
    """Return the floating-point operations per second of "5 GFLOP/s". Raises ValueError if it is anything else."""
    number, unit = quantity(text, 'a speed such as "5 GFLOP/s"')
    name = unit.lower().replace(" ", "").removesuffix("/s")
    prefix = name.removesuffix("flop")
    if number and (not name.endswith("flop") or prefix not in _PREFIXES or not unit.endswith("/s")):
        raise ValueError(f'"{unit}" is not a speed (accepted: FLOP/s, kFLOP/s, MFLOP/s, GFLOP/s, TFLOP/s)')
    return _positive(number * _PREFIXES.get(prefix, 1), text, "operation per second")


def energy(text: object) -> int:
    """Return the picojoules of "2 J", "35 nJ" or "1.5 mWh". Raises ValueError if it is anything else."""
    number, unit = quantity(text, 'an energy such as "2 J" or "35 nJ"')
    factor = factor_of(unit, _ENERGIES)
    if not factor and number:
        raise ValueError(f'"{unit}" is not an energy (accepted: pJ, nJ, uJ, mJ, J, kJ, mWh, Wh)')
    return _whole(number * factor, text, "picojoules")


def show_energy(picojoules: int) -> str:
    """Return an energy in the largest unit that divides it; `energy` reads it back."""
    unit = next(u for u in ("kJ", "J", "mJ", "uJ", "nJ", "pJ") if picojoules % int(_ENERGIES[u]) == 0)
    return f"{picojoules // int(_ENERGIES[unit])} {unit}"


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
    unit = next(u for u in ("TB", "GB", "MB", "kB", "B") if number % int(_SIZES[u]) == 0)
    return f"{number // int(_SIZES[unit])} {unit}"


def factor_of(unit: str, known: _Factors, accepted: str = "") -> Fraction:
    """Return what `unit` stands for, 0 if it is unknown.

    Raises ValueError if only its case could tell which of two units is meant, and it is neither's.
    """
    if unit in known:
        return known[unit]
    meant = {word: factor for word, factor in known.items() if word.lower() == unit.lower()}
    if len(set(meant.values())) > 1:
        either = f"could be {' or '.join(meant)}, which are different units"
        raise ValueError(f'"{unit}" {either}' + (f" ({accepted})" if accepted else ""))
    return next(iter(meant.values()), _UNREADABLE)


def quantity(text: object, accepted: str) -> tuple[Fraction, str]:
    """Return number and unit of a text. Raises ValueError, which says what is `accepted`, if it has none."""
    if text == 0 and not isinstance(text, bool):
        return Fraction(0), ""
    if isinstance(text, str) and (match := _QUANTITY.fullmatch(text)):
        return Fraction(match[1]), match[2].strip()
    bare = isinstance(text, (int, float)) or (isinstance(text, str) and _BARE.fullmatch(text))
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


def _schema(*examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": list(examples)})


_DURATION_SCHEMA = _schema("90s", "2h40min")
Duration = Annotated[int, BeforeValidator(duration), PlainSerializer(show_duration, str), _DURATION_SCHEMA]  # ns
Rate = Annotated[int, BeforeValidator(rate), PlainSerializer(show_rate, str), _schema("2 MB/s")]  # bytes per second
Work = Annotated[int, BeforeValidator(work), PlainSerializer(show_work, str), _schema("300 MFLOP")]  # operations
Speed = Annotated[int, BeforeValidator(speed), PlainSerializer(show_speed, str), _schema("5 GFLOP/s")]  # 1/s
Size = Annotated[int, BeforeValidator(size), PlainSerializer(show_size, str), _schema("5 MB")]  # bytes
Energy = Annotated[int, BeforeValidator(energy), PlainSerializer(show_energy, str), _schema("2 J")]  # picojoules
