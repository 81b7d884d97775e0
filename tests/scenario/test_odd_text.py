"""What YAML makes of odd text: a text stays a text, or one message says what is wrong."""

import re
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fedactors import Scenario
from fedactors.errors import ScenarioError
from fedactors.run_files.files import yaml_of
from fedactors.scenario.loading import parse, validate
from fedactors.scenario.yaml_text import written

ROOT = Path(__file__).parents[2]
TEXT = re.sub(r"^seed: .*\n", "", (ROOT / "scenarios/quickstart.yaml").read_text(), flags=re.MULTILINE)
NAME = re.search(r"^name: .*$", TEXT, re.MULTILINE)[0]
GROUP = re.search(r"- name: \w+", TEXT)[0]


def loaded(before, after):
    data, lines = parse(TEXT.replace(before, after, 1), "odd.yaml")
    return validate(data, "odd.yaml", lines, ROOT / "scenarios")


@pytest.mark.parametrize("name", ["1e5f3ab", "2020-01-01", "1e", "e5"])
def test_a_name_that_looks_like_a_number_or_a_date_is_a_name(name):
    assert loaded(NAME, f"name: {name}").name == name


ODD = st.text(st.characters(max_codepoint=0x2FF), max_size=100) | st.sampled_from(
    ["1e3", "0E0", "2e-5", "1_0", "0x1f", "2020-01-01", "on", "No", "~", "=", "", " ", "a: b", "# a", "\n", "\t"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ODD,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ODD, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(ODD, VALUES, min_size=1, max_size=4))
def test_what_is_written_is_read_as_it_was_by_both_readers(data):
    text = written(data)
    assert parse(text, "odd.yaml")[0] == data
    assert yaml_of(Path("odd.yaml"), text) == data


def test_what_is_written_has_keys_in_their_order_and_accents_as_they_are():
    data = Scenario.load(ROOT / "scenarios/quickstart.yaml").dump()
    assert written(data) == yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    assert written({"b": "été", "a": [1]}) == "b: été\na:\n- 1\n"


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "On"])
def test_a_key_that_yaml_takes_for_true_or_false_is_a_text(word):
    data, lines = parse(f"arguments:\n  {word}: 8h\n", "odd.yaml")
    assert data == {"arguments": {word: "8h"}}
    assert lines[("arguments", word)] == 2


def test_a_rhythm_of_the_day_is_read_without_quotes():
    law = "{name: process, behaviour: diurnal, arguments: {on: 7h30min, off: 20}}"
    made = Scenario.load(ROOT / "scenarios/quickstart.yaml", [f"population.0.availability={law}"])
    assert made.population[0].availability.arguments == {"on": "7h30min", "off": 20}


def test_an_emoji_as_a_surrogate_pair_is_one_character():
    assert loaded(GROUP, '- name: "\\ud83d\\ude00"').population[0].name == "\N{GRINNING FACE}"


def test_a_rate_with_an_exponent_is_a_rate():
    override = "population.0.network={down: 1e9 MB/s, up: 1 MB/s}"
    assert Scenario.load(ROOT / "scenarios/quickstart.yaml", [override]).population[0].network.down == 10**15


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("seed: !!timestamp abc", "line 3: not valid YAML: 'abc' is no timestamp"),
        ("seed: !!int ''", "line 3: not valid YAML: '' is no int"),
        ("seed: !!bool perhaps", "line 3: not valid YAML: 'perhaps' is no bool"),
        (f"seed: 0x{'f' * 10_000}", "line 3: not valid YAML: a number of 10,002 digits (accepted: 100)"),
        (f"seed: {'9' * 10_000}", "line 3: not valid YAML: a number of 10,000 digits (accepted: 100)"),
        (f"seed: {'9' * 90}", "line 3: seed: found 9999"),
        ('precision: "\\udc00"', "line 3: not valid YAML: half of a surrogate pair"),
        ("seed: =", "line 3: not valid YAML: could not determine"),
        ("? [a]\n: 3", "line 3: not valid YAML: found unhashable key"),
    ],
)
def test_a_text_that_is_no_such_value_is_named_with_its_line(line, words):
    with pytest.raises(ScenarioError) as caught:
        loaded(NAME, f"{NAME}\n{line}")
    assert str(caught.value).startswith(f"odd.yaml, {words}")


def test_a_name_with_an_accent_is_told_in_words_what_a_name_is_made_of():
    with pytest.raises(
        ScenarioError, match="found 'été', must be made of the letters A to Z and a to z without accents"
    ):
        loaded(NAME, "name: été")


def test_a_number_of_thousands_of_digits_in_data_is_told():
    data, _ = parse(TEXT, "odd.yaml")
    with pytest.raises(ScenarioError, match="a int too large to print"):
        validate({**data, "seed": 10**10_000}, "odd.yaml")


@pytest.mark.parametrize("key", ["1" * 5000, "\N{SUPERSCRIPT TWO}"])
def test_an_odd_number_of_a_group_is_no_group(key):
    with pytest.raises(ScenarioError, match="no group"):
        Scenario.load(ROOT / "scenarios/quickstart.yaml", [f"population.{key}.count=3"])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [" + "x," * 900_000 + "]", marks=pytest.mark.slow),
        pytest.param("a: " + "[" * 100_000, marks=pytest.mark.slow),
        "- " * 100_000,
        pytest.param("\n".join(f"k{n}: v" for n in range(90_000)), marks=pytest.mark.slow),
    ],
)
def test_a_file_of_many_entries_is_refused_within_seconds(text):
    begun = time.perf_counter()
    with pytest.raises(ScenarioError, match=r"more entries than|recursion"):
        parse(text, "large.yaml")
    assert time.perf_counter() - begun < 20
