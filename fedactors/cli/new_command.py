"""`fedactors new KIND NAME`: a plugin in a Python file and a scenario that runs it, to begin from."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from fedactors import registry
from fedactors.errors import UsageError

_KINDS = {"algorithm": "algorithms", "dataset": "datasets", "model": "models", "selection": "selection"}
_PLACES = {
    "algorithm": {"algorithm": "{{name: {name}, bound: 2.0}}  # with the options that {file} gives it"},
    "dataset": {"dataset": "{{name: {name}, samples: 800}}  # with the options that {file} gives it"},
    "model": {"model": '{{name: torch, factory: "{file}:{cls}", arguments: {{width: 8}}}}'},
    "selection": {"selection": "{{name: {name}, random_share: 0.25}}  # with the options that {file} gives it"},
}
_USUAL = {
    "dataset": "digits",
    "model": "{{name: mlp, hidden: [32]}}",
    "selection": "uniform",
    "algorithm": "fedavg",
}
_SCENARIO = """\
# Runs {file}. Try: fedactors check {name}.yaml, and then: fedactors run {name}.yaml --fleet local
name: {name}
seed: 1
{plugins}
task:
  dataset: {dataset}
  model: {model}
  partition: {{name: dirichlet, alpha: 1.0}}  # or iid: every client has samples of all classes

population:
  - name: phones
    count: 20
    compute: {{per_sample: 10ms, spread: 0.5}}  # fast and slow ones
    network: {{down: 1 MB/s, up: 250 kB/s, latency: 50ms}}

server:
  rounds: 10
  cohort: 5
  selection: {selection}
  algorithm: {algorithm}
  local: {{epochs: 2, batch: 10}}
  schedule: {{name: constant, lr: 0.1}}
"""
_PLUGINS = "\nplugins: [{file}]  # classes in these files can be named below, in this scenario only\n"


def extend(command: argparse.ArgumentParser) -> None:
    """Declare the options of `new`."""
    command.add_argument("kind", choices=[*_KINDS], help="what to write")
    command.add_argument("name", metavar="NAME", help="its name: lower-case letters, digits, - and _")
    command.add_argument("--out", metavar="DIR", default=".", help="folder for the two files (default: this one)")


def run(options: argparse.Namespace) -> int:
    """Write the two files and say what to do with them. Raises UsageError if that is not possible."""
    kind = options.kind
    name = options.name
    folder = Path(options.out)
    _check_name(kind, name)
    code = folder / f"{name.replace('-', '_')}.py"
    scenario = folder / f"{name}.yaml"
    for path in (code, scenario):
        if path.exists():
            raise UsageError(f"{path}: is there already (accepted: another name, or another --out)")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        code.write_text(_code(kind, name, code.name), encoding="utf-8")
        scenario.write_text(_scenario(kind, name, code.name), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
    print(f"{code}\n{scenario}\nrun it: fedactors run {scenario} --fleet local")
    return 0


def _check_name(kind: str, name: str) -> None:
    """Raise UsageError if a plugin of a kind cannot have a name."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,60}", name):
        raise UsageError(f'new: found the name "{name}" (accepted: lower-case letters, digits, - and _)')
    if kind != "model" and name in registry.names(_KINDS[kind]):
        raise UsageError(f'new: there is already "{name}" among {_KINDS[kind]} (accepted: a name of its own)')


def _class(name: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[-_]", name))


def _code(kind: str, name: str, file: str) -> str:
    """Return the starter of a kind under another name."""
    text = (Path(__file__).parents[1] / "starters" / f"starter_{kind}.py").read_text(encoding="utf-8")
    text = text.replace("starter.py", file).replace(f"Starter{kind.capitalize()}", _class(name))
    return text.replace("starter", name)


def _scenario(kind: str, name: str, file: str) -> str:
    known = {"name": name, "file": file, "cls": _class(name)}
    places = {place: text.format(**known) for place, text in {**_USUAL, **_PLACES[kind]}.items()}
    plugins = "" if kind == "model" else _PLUGINS.format(**known)
    return _SCENARIO.format(**known, **places, plugins=plugins)
