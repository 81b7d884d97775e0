"""Rules of availability: what they mean, that they mean the same as Python, and what is refused."""

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.errors import TraceError
from fedactors.traces.formats.availability_rule import Phone, parse

KNOWN = Phone(charging=True, screen=False, locked=True, network="wifi", battery=40.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("charging & wifi & locked", True),
        ("charging and wifi and not screen", True),
        ("Charging & WiFi & screen_off", True),
        ("screen | unlocked", False),
        ("screen_on or battery >= 40", True),
        ("battery > 40", False),
        ("battery <= 40 %", True),
        ("battery < 40.5%", True),
        ("battery == 40", True),
        ("battery != 40", False),
        ("!(charging & screen)", True),
        ("!charging | wifi & locked", True),
        ("(!charging | wifi) & screen", False),
        ("not battery < 20 & wifi", True),
        ("4g | 5g | cellular", False),
        ("!!charging", True),
    ],
)
def test_meaning(text, value):
    assert parse(text).holds(KNOWN) is value


def test_every_network_is_one_of_wifi_cellular_and_neither():
    for network, wifi, cellular in [("wifi", True, False), ("3g", False, True), ("unknown", False, False)]:
        phone = Phone(network=network)
        assert parse("wifi").holds(phone) is wifi
        assert parse("cellular").holds(phone) is cellular
    assert parse("3g").holds(Phone(network="3g")) is True


def test_the_unknown_stays_unknown_unless_it_does_not_matter():
    phone = Phone(charging=True, locked=False)
    assert parse("wifi").holds(phone) is None
    assert parse("!wifi").holds(phone) is None
    assert parse("battery >= 0").holds(phone) is None
    assert parse("charging & wifi").holds(phone) is None
    assert parse("wifi & locked").holds(phone) is False
    assert parse("locked & wifi").holds(phone) is False
    assert parse("wifi | charging").holds(phone) is True
    assert parse("wifi | locked").holds(phone) is None


WORDS = ("charging", "screen", "locked")
TREES = st.recursive(
    st.sampled_from(WORDS),
    lambda inner: st.one_of(
        inner.map(lambda a: f"(not {a})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
    ),
    max_leaves=6,
)


@given(TREES)
def test_known_facts_mean_what_python_means(text):
    rule = parse(text)
    for values in itertools.product([True, False], repeat=3):
        facts = dict(zip(WORDS, values, strict=True))
        assert rule.holds(Phone(**facts)) is eval(text, {}, facts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chargin & wifi", 'unknown word "chargin"; did you mean "charging"?'),
        ("charging & wfi", 'unknown word "wfi"; did you mean "wifi"?'),
        ("", "ends where a word is expected"),
        ("charging &", "ends where a word is expected"),
        ("(charging", "not closed"),
        ("charging)", '")" after the end (accepted: &, | or nothing)'),
        ("charging wifi", '"wifi" after the end'),
        ("battery", "battery is compared with nothing (accepted: battery >= 40"),
        ("battery >= full", "battery is compared with nothing"),
        ("battery = 40", "battery is compared with nothing"),
        ("40 <= battery", 'unknown word "40"'),
        ("!" * 1000 + "wifi", "too deeply nested"),
        ("(" * 100_000, "too deeply nested"),
        ("__import__('os')", "unknown word"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(TraceError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith('rule "')
    assert len(str(caught.value)) < 400


@given(st.text(max_size=30))
def test_any_text_is_a_rule_or_one_error(text):
    with contextlib.suppress(TraceError):
        parse(text).holds(KNOWN)
