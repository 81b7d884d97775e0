"""The reference pages, written from what the code says of itself: schema, registry, parser and docstrings."""

import argparse
import inspect
import json
from itertools import takewhile

import fedactors
from fedactors import registry
from fedactors.cli.main import parser
from fedactors.option_texts import option_texts
from fedactors.papers.catalogue import FULL, REDUCED
from fedactors.scenario.model import Scenario

_KINDS = {
    "algorithms": "Algorithms",
    "attacks": "Attacks",
    "participation": "Participation: what weight an update has",
    "schedules": "Learning rates",
    "datasets": "Data sets",
    "models": "Models",
    "partitions": "Partitions",
    "server_data": "Data of the server",
}


def scenario():
    """Return the page of all keys of a scenario file, from its JSON schema."""
    schema = Scenario.model_json_schema()
    parts = ["# Scenario files", "", "Every key, from the schema that `fedactors schema` prints.", ""]
    parts += _object("Scenario", schema)
    for name, found in schema.get("$defs", {}).items():
        if "properties" in found:
            parts += _object(name, found)
    return "\n".join(parts)


def choices():
    """Return the page of everything that a scenario may name, with the options of each."""
    parts = ["# Names and their options", "", "What a scenario may name, here and in packages that add to it.", ""]
    for kind in registry.BUILTIN:
        parts += [f"## {_KINDS.get(kind, kind.replace('_', ' ').capitalize())}", ""]
        for name in sorted(registry.BUILTIN[kind]):
            parts += _choice(name, registry.lookup(kind, name))
    return "\n".join(parts)


def commands():
    """Return the page of the command line, from its parser."""
    parts = ["# Commands", ""]
    for name, command in _commands(parser()):
        parts += [f"## fedactors {name}", "", f"{_sentence(command.description)}", ""]
        parts += ["```text", command.format_help().strip(), "```", ""]
    return "\n".join(parts)


def api():
    """Return the page of the Python interface, for mkdocstrings to fill in."""
    named = [
        "fedactors.simulation.runner.run",
        "fedactors.simulation.runner.resume",
        "fedactors.simulation.checks.check.check",
        "fedactors.simulation.replay.replay",
        "fedactors.simulation.record.trained_run.load_run",
        "fedactors.study.comparison.compare",
        "fedactors.study.sweep.sweep",
        "fedactors.simulation.verify.verify",
        "fedactors.simulation.result.Result",
        "fedactors.scenario.model.Scenario",
        "fedactors.traces.format_registry",
        "fedactors.traces.formats.native",
        "fedactors.report.html",
        "fedactors.learning.algorithm",
        "fedactors.options",
        "fedactors.plan",
        "fedactors.errors",
    ]
    names = [f"`fedactors.{name}` is `{home}.{name}`." for name, home in fedactors._HOMES.items()]
    text = ["# Python", "", " ".join(names), ""]
    return "\n".join([*text, *(f"::: {name}\n" for name in named if _there(name))])


def experiments():
    """Return the page of all experiments of papers, from the catalogue."""
    parts = [
        "# All experiments",
        "",
        "`fedactors reproduce NAME` runs one at the paper's size, `--reduced` its small twin.",
    ]
    for prefix, paper in _PAPERS.items():
        parts += ["", f"## {paper}", "", "| name | what | reduced | full |", "|---|---|---|---|"]
        names = sorted(name for name in {**REDUCED, **FULL} if _prefix(name) == prefix)
        for name in names:
            title = (REDUCED.get(name) or FULL[name]).title.replace(", reduced", "")
            parts.append(f"| `{name}` | {_cell(title)} | {_yes(name in REDUCED)} | {_yes(name in FULL)} |")
    return "\n".join([*parts, ""])


_PAPERS = {
    "fsl": "FSL, journal (Mai, La, Zhang)",
    "fsl-conf": "FSL, conference (Mai, La, Zhang)",
    "flexible": "Flexible device participation (Ruan et al.)",
    "mixed": "Mixed federated learning (Augenstein et al.)",
    "fedlamb": "Fed-LAMB",
}


def _prefix(name):
    return max((prefix for prefix in _PAPERS if name.startswith(f"{prefix}-")), key=len, default="")


def _yes(found):
    return "yes" if found else ""


PAGES = {
    "papers/experiments.md": experiments,
    "reference/scenario.md": scenario,
    "reference/names.md": choices,
    "reference/commands.md": commands,
    "reference/python.md": api,
}


def _there(name):
    from pydoc import locate

    return locate(name) is not None


def _object(name, schema):
    parts = [
        f"## {name}",
        "",
        _cell(schema.get("description", "")),
        "",
        "| key | value | default | |",
        "|---|---|---|---|",
    ]
    required = schema.get("required", [])
    for key, field in schema["properties"].items():
        default = "required" if key in required else f"`{json.dumps(field['default'])}`" if "default" in field else ""
        parts.append(f"| `{key}` | {_type(field)} | {_cell(default)} | {_cell(field.get('description', ''))} |")
    return [*parts, ""]


def _type(field):
    """Return what a value may be, in words, with links to what is told elsewhere on the page."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    for several in ("anyOf", "oneOf"):
        if several in field:
            words = [_type(one) for one in field[several] if "properties" not in one]
            named = ["a [mapping](names.md)"] if any("properties" in one for one in field[several]) else []
            return " or ".join(dict.fromkeys([*words, *named]))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    example = f", such as `{field['examples'][0]}`" if field.get("examples") else ""
    return f"{field.get('type', 'anything')}{_limits(field)}{example}"


def _limits(field):
    words = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return "".join(f" {sign} {field[key]:g}" for key, sign in words.items() if key in field)


def _choice(name, found):
    """Return a registered name: the first paragraph of its docstring, and its options."""
    parts = [f"### {name}", "", _sentence(inspect.getdoc(found) or ""), ""]
    rows = [(key, field) for key, field in getattr(found, "model_fields", {}).items() if key != "name"]
    if rows:
        parts += ["| option | default | |", "|---|---|---|"]
        texts = option_texts(found)
        for key, field in rows:
            default = "required" if field.is_required() else f"`{field.get_default(call_default_factory=True)}`"
            parts.append(f"| `{key}` | {_cell(default)} | {_cell(texts.get(key, ''))} |")
        parts.append("")
    return parts


def _sentence(text):
    """Return the first paragraph."""
    return " ".join(takewhile(bool, (text or "").strip().splitlines()))


def _cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


def _commands(parser, before=""):
    """Yield (name, parser) of every command, those inside others too."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield f"{before}{name}", command
                yield from _commands(command, f"{before}{name} ")
