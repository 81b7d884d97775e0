"""`fedactors scenarios`: list the scenarios that come with fedactors, and write one of them to edit."""

from __future__ import annotations

import argparse
from pathlib import Path

from fedactors import packaged
from fedactors.cli import shared_options
from fedactors.errors import UsageError


def extend(command: argparse.ArgumentParser) -> None:
    """Declare the options and the action `copy`."""
    command.set_defaults(action=_list)
    command.add_argument("--all", action="store_true", help="also those of papers, and examples with Python files")
    shared_options.as_json(command)
    actions = command.add_subparsers(metavar="COMMAND")
    text = "write a scenario, and the recordings it needs, to edit"
    copy = actions.add_parser("copy", help=text, description=text)
    copy.set_defaults(action=_copy)
    copy.add_argument("name", metavar="NAME", help="such as quickstart")
    copy.add_argument("--out", metavar="DIR", default=".", help="folder for the files (default: this one)")


def run(options: argparse.Namespace) -> int:
    """Do what was asked for and return the exit code. Raises UsageError for what the user can correct."""
    result: int = options.action(options)
    return result


def _list(options: argparse.Namespace) -> int:
    every = packaged.names()
    shown = [name for name in every if options.all or "/" not in name]
    about = {name: packaged.summary(name) for name in shown}
    if options.json:
        print(shared_options.as_text("scenarios", {"scenarios": about}))
        return 0
    width = max(map(len, about))
    print("\n".join(f"{name:<{width}}  {text}" for name, text in about.items()))
    more = {kind: sum(name.startswith(f"{kind}/") for name in every) for kind in ("papers", "examples")}
    rest = f"and {more['papers']} of papers, {more['examples']} with Python files: fedactors scenarios --all"
    print("" if options.all else f"\n{rest}")
    print("run one: fedactors run quickstart; write one to edit: fedactors scenarios copy quickstart")
    return 0


def _copy(options: argparse.Namespace) -> int:
    folder = Path(options.out)
    text, traces = packaged.to_edit(options.name)
    files = {folder / f"{options.name.rpartition('/')[2]}.yaml": text.encode()}
    files |= {folder / path.name: path.read_bytes() for path in packaged.code_of(options.name)}
    files |= {folder / path: packaged.packaged_file(path).read_bytes() for path in traces}
    for path, content in files.items():
        if path.exists() and not (path.is_file() and path.read_bytes() == content):
            raise UsageError(f"{path}: is there already, and differs (accepted: another --out)")
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
    print("\n".join(map(str, files)))
    print(f"run it: fedactors run {next(iter(files))}")
    return 0
