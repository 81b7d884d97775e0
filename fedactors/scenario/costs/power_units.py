"""Powers, carbon intensities, and amounts that a whole run may spend: "3 W" -> microwatts, "400 g/kWh" -> mg per kWh.

Like all quantities they are whole numbers, so that energies of trips add up exactly; see `fedactors.scenario.units`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from fedactors.plan import NEVER
from fedactors.scenario.units import factor_of, quantity

MICRO = 10**6
_POWERS = {
    "uW": 1,
    "µW": 1,
    "μW": 1,
    "mW": 10**3,
    "W": 10**6,
    "kW": 10**9,
    "MW": 0,
}  # 0: a mega that reads as a milli is none
_MASSES = {"mg": 1, "g": 10**3, "kg": 10**6, "t": 10**9}
_AMOUNTS = {  # of energy, pJ
    "J": 10**12, "kJ": 10**15, "Wh": 3_600 * 10**12, "kWh": 3_600 * 10**15, "GJ": 10**21, "GWh": 3_600 * 10**21,
}  # fmt: skip


def power(text: object) -> int:
    """Return the microwatts of "3 W", "250 mW" or 0. Raises ValueError if it is anything else."""
    return _read(text, _POWERS, 'a power such as "3 W" or "250 mW"', "a power", "microwatts")


def intensity(text: object) -> int:
    """Return the milligrams per kilowatt-hour of "400 g/kWh". Raises ValueError if it is anything else."""
    units = {f"{mass}/kWh": factor for mass, factor in _MASSES.items() if mass != "t"}
    return _read(text, units, 'a carbon intensity such as "400 g/kWh"', "a carbon intensity", "milligrams per kWh")


def mass(text: object) -> int:
    """Return the milligrams of "200 g" or "1.5 kg". Raises ValueError if it is anything else."""
    return _read(text, _MASSES, 'a mass such as "200 g" or "1.5 kg"', "a mass", "milligrams", 10**30)


def amount(text: object) -> int:
    """Return the picojoules of an energy of any size, "5 kWh". Raises ValueError if it is anything else."""
    return _read(text, _AMOUNTS, 'an energy such as "5 kWh" or "300 kJ"', "an energy", "picojoules", 10**36)


def show_power(microwatts: int) -> str:
    """Return a power in the largest unit that divides it; `power` reads it back."""
    return _shown(microwatts, _POWERS, ("kW", "W", "mW", "uW"))


def show_intensity(number: int) -> str:
    """Return a carbon intensity; `intensity` reads it back."""
    return f"{_shown(number, _MASSES, ('kg', 'g', 'mg'))}/kWh"


def show_mass(milligrams: int) -> str:
    """Return a mass in the largest unit that divides it; `mass` reads it back."""
    return _shown(milligrams, _MASSES, ("t", "kg", "g", "mg"))


def show_amount(picojoules: int) -> str:
    """Return an energy of any size in the largest unit that divides it; `amount` reads it back."""
    units = (unit for unit in ("GWh", "kWh", "Wh", "kJ", "J") if picojoules % _AMOUNTS[unit] == 0)
    unit = next(units, "J")
    whole, rest = divmod(picojoules, _AMOUNTS[unit])
    return f"{whole}{f'.{rest:012}'.rstrip('0') if rest else ''} {unit}"


def _read(text: object, units: dict[str, int], accepted: str, what: str, whole: str, most: int = NEVER) -> int:
    number, unit = quantity(text, accepted)
    known = {name: Fraction(factor) for name, factor in units.items()}
    factor = factor_of(unit, known)
    if not factor and number:
        readable = [name for name, factor in units.items() if factor]
        raise ValueError(f'"{unit}" is not {what} (accepted: {", ".join(readable)})')
    value = number * factor
    if value.denominator != 1:
        raise ValueError(f'"{text}" is not a whole number of {whole}')
    if value >= most:
        raise ValueError(f'"{text}" is too large')
    return int(value)


def _shown(number: int, factors: dict[str, int], units: tuple[str, ...]) -> str:
    unit = next(unit for unit in (units if number else units[1:]) if number % factors[unit] == 0)
    return f"{number // factors[unit]} {unit}"


def _schema(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [example]})


Power = Annotated[int, BeforeValidator(power), PlainSerializer(show_power, str), _schema("3 W")]  # microwatts
Intensity = Annotated[int, BeforeValidator(intensity), PlainSerializer(show_intensity, str), _schema("400 g/kWh")]
Mass = Annotated[int, BeforeValidator(mass), PlainSerializer(show_mass, str), _schema("200 g")]  # milligrams
Amount = Annotated[int, BeforeValidator(amount), PlainSerializer(show_amount, str), _schema("5 kWh")]  # picojoules
