"""The JSON schema accepts what we ship and refuses what we refuse, so that an editor can help."""

import contextlib
import io
import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from fedactors.cli.main import main

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(ROOT.glob("scenarios/*.yaml"))


@pytest.fixture(scope="module")
def schema():
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["schema"]) == 0
    found = json.loads(printed.getvalue())
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_scenarios_follow_the_schema(schema, path):
    assert [error.message for error in schema.iter_errors(yaml.safe_load(path.read_text()))] == []


@pytest.mark.parametrize(("section", "key"), [("server", "deadlin"), ("cluster", "actor"), ("task", "data")])
def test_unknown_keys_do_not(schema, section, key):
    data = yaml.safe_load((ROOT / "scenarios/quickstart.yaml").read_text())
    data.setdefault(section, {})[key] = 1
    assert not schema.is_valid(data)
