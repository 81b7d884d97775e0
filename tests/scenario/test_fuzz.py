"""Damaged scenarios are refused with a message that says what is wrong: no traceback, no memory taken first."""

import copy
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.errors import ScenarioError, UsageError
from fedactors.scenario.loading import parse, validate
from fedactors.simulation.prepare import prepare
from tests.examples import drawn

ROOT = Path(__file__).parents[2]
BASES = [yaml.safe_load((ROOT / "scenarios" / f"{name}.yaml").read_text()) for name in ("quickstart", "ruan-emerging")]
JUNK = st.one_of(
    st.sampled_from([None, True, -1, 0, 1, 3, 0.5, -0.0, float("nan"), float("inf"), 10**9, 2**63, 10**30, 1e308]),
    st.sampled_from(
        ["", "none", "all", "5s", "-3 min", "1e99 h", "2 MB/s", "../../etc/passwd", "\x00", "💥" * 50, "a" * 9999]
    ),
    st.sampled_from(
        [[], {}, [[]], {"name": []}, {"name": "fedavg", "x": 1}, [1, "two", None], {"name": {"name": "mlp"}}]
    ),
)


def places(value, path=()):
    """Yield the path of every value in plain data."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@st.composite
def damaged(draw):
    """Return a scenario's data with one to three values replaced, left out, or given under another name."""
    data = copy.deepcopy(draw(st.sampled_from(BASES)))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from([place for place in places(data) if place] or [("name",)]))
        inner = data
        for key in path:
            inner = inner[key]
        action = draw(st.sampled_from(["replace", "leave out", "rename"]))
        if action == "replace" or isinstance(inner, list):
            inner[last] = copy.deepcopy(draw(JUNK))
        else:
            value = inner.pop(last)
            if action == "rename":
                inner[f"{last}s"] = value
    return data


@drawn(60)
@given(damaged())
def test_a_damaged_scenario_is_sound_or_refused_with_a_message(data):
    try:
        scenario = validate(data, "damaged.yaml", folder=ROOT / "scenarios")
        prepare(scenario)
    except UsageError as error:
        said = str(error)
    else:
        said = ""
    assert len(said) < 5_000
    assert "Traceback" not in said


@drawn(60)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_data_or_refused(text):
    try:
        data, _ = parse(text, "text.yaml")
        validate(data, "text.yaml")
    except ScenarioError as error:
        said = str(error)
    else:
        said = "text.yaml"
    assert said.startswith("text.yaml")


QUICKSTART = ROOT / "scenarios/quickstart.yaml"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("server.deadline=90", "--set server.deadline=90: server.deadline: "),
        ("population.tablets.count=0", "--set population.tablets.count=0: population.2.count (group tablets): "),
        ("server={rounds: 1, cohorts: 3}", "--set server={rounds: 1, cohorts: 3}: server.cohorts: "),
    ],
)
def test_a_bad_value_from_the_command_line_is_told_as_that(override, words, capsys):
    assert main(["check", str(QUICKSTART), "--set", override]) == 2
    assert capsys.readouterr().err.startswith(f"fedactors: {words}")


def test_a_bomb_in_an_override_is_refused():
    bomb = "&a [x,x,x,x,x,x,x,x,x,x]"
    for depth in "bcdefgh":
        bomb = f"{{k: {bomb}, {depth}: &{depth} [{','.join(['*' + chr(ord(depth) - 1)] * 10)}]}}"
    with pytest.raises(ScenarioError, match=r"--set name=\{k: .*more entries than a scenario can have"):
        Scenario.load(QUICKSTART, [f"name={bomb}"])


def test_a_pipe_among_the_files_of_a_run_is_refused(tmp_path, capsys):
    import os

    os.mkfifo(tmp_path / "metrics.jsonl")
    for command in ("report", "audit"):
        assert main([command, str(tmp_path)]) == 2
        assert "metrics.jsonl: neither a file nor a folder" in capsys.readouterr().err


def test_a_name_cannot_lead_out_of_the_folder_of_runs():
    for name in ("../x", "/tmp/x", "a/b", "..", ""):
        with pytest.raises(ScenarioError, match="name"):
            validate({**BASES[0], "name": name}, "s.yaml")
