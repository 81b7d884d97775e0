"""The options of `fedactors branch`, and `fedactors diff`."""

from __future__ import annotations

import argparse
import json

from fedactors.cli import shared_options

_MOST = 10_000_000


def extend(command: argparse.ArgumentParser) -> None:
    """Declare the options of `branch` but for where it is computed."""
    command.add_argument("run", metavar="RUN", help="run folder")
    command.add_argument("--at", required=True, type=_round, metavar="round=N", help="the last round that is shared")
    shared_options.overrides(command, "what is changed after it")
    command.add_argument("--out", metavar="DIR", help="run folder of the branch")
    shared_options.as_json(command)


def _round(text: str) -> int:
    number = text.removeprefix("round=")
    if not number.isdigit() or not 1 <= int(number) <= _MOST:
        raise argparse.ArgumentTypeError(f'found "{text}" (accepted: round=N, N from 1)')
    return int(number)


def extend_diff(command: argparse.ArgumentParser) -> None:
    """Declare the options of `diff`."""
    command.add_argument("runs", nargs=2, metavar="RUN", help="run folder")
    shared_options.as_json(command)


def diff(options: argparse.Namespace) -> int:
    """Say where two runs part. Raises RunFolderError if one cannot be read."""
    from fedactors.simulation.inspect.difference import diff, text

    found = diff(*options.runs)
    print(json.dumps(found, indent=2) if options.json else text(found))
    return 0
