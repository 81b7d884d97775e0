"""Powers, carbon intensities, masses and amounts: read, shown, refused."""

import re

import pytest

from fedactors.scenario.costs import power_units as units


@pytest.mark.parametrize(
    ("read", "show", "text", "value"),
    [
        (units.power, units.show_power, "3 W", 3_000_000),
        (units.power, units.show_power, "250 mW", 250_000),
        (units.power, units.show_power, "0 W", 0),
        (units.power, units.show_power, "2 kW", 2 * 10**9),
        (units.intensity, units.show_intensity, "400 g/kWh", 400_000),
        (units.intensity, units.show_intensity, "1 kg/kWh", 10**6),
        (units.mass, units.show_mass, "250 mg", 250),
        (units.mass, units.show_mass, "3 t", 3 * 10**9),
        (units.amount, units.show_amount, "5 kWh", 18 * 10**18),
        (units.amount, units.show_amount, "300 J", 300 * 10**12),
        (units.amount, units.show_amount, "0.25 J", 25 * 10**10),
    ],
)
def test_quantities_read_back(read, show, text, value):
    assert read(text) == value
    assert show(value) == text


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (units.power, "3", "no unit"),
        (units.power, "3 J", '"J" is not a power'),
        (units.power, "3 MW", '"MW" is not a power (accepted: uW, µW, μW, mW, W, kW)'),
        (units.power, "0.1 uW", "whole number of microwatts"),
        (units.intensity, "400 g", "not a carbon intensity"),
        (units.mass, "4 kWh", "not a mass"),
        (units.amount, "5 MWh", "not an energy"),
    ],
)
def test_quantities_that_mean_nothing_are_refused(read, text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        read(text)
