"""Whether what a command prints with `--json` is what its schema says."""

import json

import jsonschema

from fedactors.cli.outputs import json_schema

# further keys depend on what a recording holds
OPEN = ("traces describe",)


def strict(schema):
    """Return a schema that allows no keys but those it names."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema else {}
    return {**closed, **{key: strict(value) for key, value in schema.items()}}


def assert_described(command, said):
    found = json.loads(said)
    schema = json_schema(command)
    jsonschema.validate(found, schema if command in OPEN else strict(schema))
    kind = "run" if command in ("resume", "branch") else command
    assert found["schema"] == f"fedactors/{kind}/1"
    assert next(iter(found)) == "schema"
