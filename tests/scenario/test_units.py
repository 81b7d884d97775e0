"""Quantities with units: the case of a unit counts where it makes a difference, and decimals are exact."""

import pytest

from fedactors.scenario.units import duration, energy, rate, show_energy, show_size, size, work

SECOND = 10**9


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (rate, "2 MB/s", 2_000_000),
        (rate, "2 MBps", 2_000_000),
        (rate, "2 Mb/s", 250_000),  # 2 * 10**6 bits / 8
        (rate, "2 Mbps", 250_000),
        (rate, "2 Mbit/s", 250_000),
        (rate, "2 mbit/s", 250_000),  # the word bit leaves no doubt, and nobody means a thousandth of one
        (rate, "2 megs", None),
        (rate, "16 kbps", 2_000),
        (rate, "16 kBps", 16_000),
        (rate, "16 KB/s", 16_000),
        (rate, "8 b/s", 1),
        (rate, "8 B/s", 8),
        (rate, "1 MiB / s", 2**20),
        (rate, "1 Mib/s", 2**17),
        (rate, "1e3 MB/s", 10**9),
        (rate, "1.5e-3 GB/s", 1_500_000),
        (rate, "2 MB", None),
        (size, "5 MB", 5_000_000),
        (size, "5 Mb", 625_000),
        (size, "8 kbit", 1_000),
        (size, "5 kilobytes", None),
        (duration, "5 min", 300 * SECOND),
        (duration, "5 m", 300 * SECOND),
        (duration, "5 Min", 300 * SECOND),
        (duration, "2 H", 7200 * SECOND),
        (duration, "1e3 s", 1000 * SECOND),
        (duration, "1e99 h", None),
        (duration, "9.25 h", 33_300 * SECOND),
        (energy, "2 mJ", 2 * 10**9),
        (energy, "2 mWh", 7_200 * 10**9),
        (energy, "2 MJ", None),
        (energy, "2 MWh", None),
        (work, "3 GFLOPs", 3 * 10**9),
        (work, "3 gflop", 3 * 10**9),
        (work, "3 GFLOPS", None),  # with a capital S, operations per second
    ],
)
def test_a_quantity_is_what_its_unit_says(read, text, value):
    if value is None:
        with pytest.raises(ValueError, match=r"is not a|too large"):
            read(text)
    else:
        assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (rate, "2 mb/s", '"mb" could be MB or Mb'),
        (rate, "2 gbps", '"gb" could be GB or Gb'),
        (size, "5 mb", '"mb" could be MB or Mb'),
        (size, "5 mib", '"mib" could be MiB or Mib'),
        (duration, "5 MS", '"MS" could be ms or Ms'),
        (duration, "5 M", '"M" is not a unit of time'),
        (energy, "2 mj", '"mj" could be mJ or MJ'),
    ],
)
def test_a_unit_that_could_be_two_is_refused(read, text, words):
    with pytest.raises(ValueError, match=words):
        read(text)


@pytest.mark.parametrize("text", ["9.25", "7", "1e3", ".5", "9."])
def test_a_bare_number_has_no_unit_whatever_its_form(text):
    with pytest.raises(ValueError, match="has no unit"):
        duration(text)


def test_what_is_shown_is_read_back():
    for value in (1, 1000, 2_500_000, 10**12):
        assert size(show_size(value)) == value
        assert energy(show_energy(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2h40min", 160 * 60 * SECOND),
        ("2h40m", 160 * 60 * SECOND),
        ("2 h 40 min", 160 * 60 * SECOND),
        ("1d12h", 36 * 3600 * SECOND),
        ("1min30s", 90 * SECOND),
        ("1 week 2 days", 9 * 86_400 * SECOND),
        ("1s500ms", 1_500_000_000),
        ("1min1.5s", 61_500_000_000),
        ("1h90min", 150 * 60 * SECOND),
        ("0h30min", 30 * 60 * SECOND),
    ],
)
def test_a_duration_has_parts_whose_units_fall(text, value):
    assert duration(text) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("40min2h", "each unit must be smaller than the one before it"),
        ("1h1hour", "each unit must be smaller than the one before it"),
        ("1.5h30min", "a decimal fraction before a smaller unit"),
        ("2h40", "'2h40' cannot be read .accepted: a duration such as"),
        ("2h-40min", "'2h-40min' cannot be read"),
        ("2h, 40min", "cannot be read"),
        ("2h40 M", '"M" is not a unit of time: min or ms'),
        ("2h40foo", '"foo" is not a unit of time'),
        ("0.5ns", "is not a whole number of nanoseconds"),
        ("1s0.5ns", "is not a whole number of nanoseconds"),
    ],
)
def test_parts_that_add_up_to_no_duration(text, words):
    with pytest.raises(ValueError, match=words):
        duration(text)
