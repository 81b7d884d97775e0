"""`fedactors completion SHELL`: a script that completes commands, options and packaged scenarios in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from fedactors import packaged
from fedactors.extras import needed

_NAMES = """
_fedactors_scenarios() {{
  compgen -W "{names}" -- "$1"
  compgen -f -X '!*.@(yaml|yml)' -- "$1"
  compgen -d -S '/' -- "$1"
}}
"""


def extend(command: argparse.ArgumentParser, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Declare the options; `parser` gives the parser of the command line that is to be completed."""
    command.add_argument("shell", choices=["bash", "zsh", "tcsh"], help="which shell")
    command.set_defaults(whole=parser)


def run(options: argparse.Namespace) -> int:
    """Print the script. Raises UsageError if shtab is not installed."""
    shtab = needed("shtab", "completion")
    parser = options.whole()
    for action in _positional(parser):
        if action.dest == "scenario":
            vars(action)["complete"] = {"bash": "_fedactors_scenarios", "zsh": "_files", "tcsh": "f"}
        elif action.dest in {"run", "runs", "path"}:
            vars(action)["complete"] = shtab.FILE
    preamble = {"bash": _NAMES.format(names=" ".join(packaged.names()))}
    print(shtab.complete(parser, shell=options.shell, preamble=preamble))
    return 0


def _positional(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments without dashes of a parser and of the commands below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _positional(command)
        elif not action.option_strings:
            yield action
