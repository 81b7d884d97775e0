"""What `--json` prints is what `fedactors schema COMMAND` says, without a key that it does not know."""

import argparse
import json
from pathlib import Path

import jsonschema
import pytest

from fedactors.cli.main import main, parser
from fedactors.cli.outputs import OUTPUTS, json_schema
from tests.cli.described import assert_described, strict

ROOT = Path(__file__).parents[2]
CAMPUS = str(ROOT / "traces/campus.csv")
USAGE = str(ROOT / "traces/recorded/usage.windows.csv")
SHORT = ["quickstart", "--set", "server.rounds=2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    for name, seed in (("run", 7), ("other", 8)):
        words = ["run", *SHORT, "--set", f"seed={seed}", "--fleet", "local", "--out", str(folder / name)]
        assert main(words) == 0
    return folder


COMMANDS = {
    "check": ["check", "quickstart"],
    "check with a forecast": ["check", "quickstart", "--forecast", "--fleet", "local", "--budget", "1s"],
    "replay": ["replay", *SHORT, "--out", "OUT"],
    "replay over recordings": ["replay", *SHORT, "--traces", CAMPUS, USAGE, "--out", "OUT"],
    "replay of clients with models of unlike sizes": [
        "replay", "papers/mixed/fig3-reduced", "--set", "server.rounds=2", "--out", "OUT",
    ],
    "run": ["run", *SHORT, "--fleet", "local", "--out", "OUT"],
    "run with energy and a price": [
        "run", *SHORT, "--fleet", "local", "--out", "OUT", "--set", "population.0.energy={per_step: 3 J}", "--set",
        "cluster.price_per_node_hour=1", "--set", "server.evaluate_every=9",
    ],
    "branch": ["branch", "RUN", "--at", "round=1", "--set", "server.rounds=3", "--fleet", "local", "--out", "OUT"],
    "audit": ["audit", "RUN"],
    "diff": ["diff", "RUN", "OTHER"],
    "diff of the same": ["diff", "RUN", "RUN"],
    "scenarios": ["scenarios", "--all"],
    "data describe": ["data", "describe", "quickstart"],
    "traces describe": ["traces", "describe", CAMPUS],
    "traces convert": ["traces", "convert", CAMPUS, "OUT.csv"],
    "traces sample": ["traces", "sample", CAMPUS, "OUT.csv", "--devices", "3"],
    "traces formats": ["traces", "formats"],
    "compare": [
        "compare", *SHORT, "--vary", "server.local.epochs=1,2", "--seeds", "2", "--jobs", "1", "--out", "OUT",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_its_schema_says(name, run, tmp_path, capsys):
    places = {"RUN": run / "run", "OTHER": run / "other", "OUT": tmp_path / "out", "OUT.csv": tmp_path / "out.csv"}
    words = [str(places.get(word, word)) for word in COMMANDS[name]]
    command = max((one for one in OUTPUTS if f"{name} ".startswith(f"{one} ")), key=len)
    assert main([*words, "--json"]) == 0
    assert_described(command, capsys.readouterr().out)


def test_what_is_resumed_prints_what_a_run_does(run, tmp_path, capsys):
    words = ["run", "quickstart", "--set", "server.rounds=3", "--fleet", "local", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    (tmp_path / "run/summary.json").unlink()
    capsys.readouterr()
    assert main(["resume", str(tmp_path / "run"), "--fleet", "local", "--json"]) == 0
    assert_described("resume", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["verify", *SHORT],
        ["scale", *SHORT, "--actors", "1", "--clients", "20", "--rounds", "2", "--simulated", "1ms", "--out", "OUT"],
    ],
    ids=lambda words: words[0],
)
def test_a_command_on_ray_prints_what_its_schema_says(words, tmp_path, capsys):
    assert main([*(word.replace("OUT", str(tmp_path)) for word in words), "--json"]) == 0
    assert_described(words[0], capsys.readouterr().out)


def with_json(found, path=()):
    """Yield the words of every command that has the option --json."""
    if path and "--json" in found._option_string_actions:
        yield " ".join(path)
    for action in found._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from with_json(command, (*path, name))


def test_every_command_with_json_has_a_schema():
    assert set(with_json(parser())) == set(OUTPUTS)


def least(schema, definitions):
    """Return the smallest output that a schema allows: all that it requires, and no more."""
    if "$ref" in schema:
        return least(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    if "anyOf" in schema:
        return least(schema["anyOf"][0], definitions)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    properties = {key: least(schema["properties"][key], definitions) for key in schema.get("required", ())}
    some = {"object": properties, "array": [], "string": "", "integer": 0, "number": 0.0, "boolean": False}
    return some[schema["type"]] if "type" in schema else None


@pytest.mark.parametrize("command", OUTPUTS)
def test_an_output_of_another_version_is_none_of_this_schema(command):
    schema = json_schema(command)
    for one in schema.get("anyOf", [schema]):
        right = least(one, schema.get("$defs", {}))
        assert right["schema"] == f"fedactors/{'run' if command in ('resume', 'branch') else command}/1"
        jsonschema.validate(right, schema)
        for other in ("fedactors/check/0", f"fedactors/{command}/2", command, "", None):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate({**right, "schema": other}, schema)


def test_the_command_prints_a_schema(capsys):
    assert main(["schema", "traces", "convert"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema("traces convert")
    assert main(["schema", "reprt"]) == 2
    assert (
        'no command "reprt" with --json; did you mean "reproduce"? accepted: audit, branch' in capsys.readouterr().err
    )


def test_an_unknown_key_is_found():
    schema = json_schema("traces convert")
    right = {"schema": "fedactors/traces convert/1", "path": "a", "out": "b", "devices": 3, "repairs": []}
    jsonschema.validate(right, strict(schema))
    for wrong in ({**right, "more": 1}, {**right, "devices": "3"}, {k: v for k, v in right.items() if k != "out"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, strict(schema))
