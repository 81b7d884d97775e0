"""The command line: parse, call the API, print. Exit codes: 0 done, 1 a fault, 2 bad input, 130 interrupted."""

from __future__ import annotations

import argparse
import errno
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

from fedactors import bits
from fedactors.cli import check_commands as check
from fedactors.cli import completion_command as completion
from fedactors.cli import data_commands as data
from fedactors.cli import folder_commands as folder
from fedactors.cli import follow_commands as follow
from fedactors.cli import new_command as new
from fedactors.cli import reproduce_command as reproduction
from fedactors.cli import run_commands as run
from fedactors.cli import scale_command as scale
from fedactors.cli import scenarios_command as scenarios
from fedactors.cli import standard_streams, stopping
from fedactors.cli import study_commands as study
from fedactors.cli import trace_commands as traces
from fedactors.errors import FedactorsError, UsageError, suggestion, visible
from fedactors.version import VERSION

_LACKS = {  # what the loader of libraries says
    "failed to map segment": "out of memory: too little address space to load a library",
    "cannot allocate memory": "out of memory: too little to load a library",
    "Cannot allocate memory": "out of memory: too little to load a library",
    "Too many open files": "too few file descriptors to load a library",
    "Error 24": "too few file descriptors to load a library",
}
# what argparse says of a word that is none of the choices
_CHOICE = re.compile(r"""argument (.+?): invalid choice: (['"])(.*)\2 \(choose from (.*)\)""", re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = parser().parse_args(arguments)
    if options.version:
        print(versions())
        return 0
    try:
        result: int = options.command(options)
    except UsageError as error:
        _say(str(error))
        return 2
    except FedactorsError as error:
        _say(f"{type(error).__name__}: {error}")
        return 1
    except KeyboardInterrupt:
        print("fedactors: interrupted", file=sys.stderr)
        return stopping.INTERRUPTED
    except MemoryError:
        print("fedactors: out of memory", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has ended: no message reaches it
        return 1
    except OSError as error:  # a disk that is full, a file that is gone: what could be written stands
        code = _of_the_user(error, _fault_of_file(error))
        return 2 if error.errno == errno.ENAMETOOLONG else code
    except Exception as error:
        return _of_the_user(error, _too_little_for_a_library(error))
    return result


def _say(message: str) -> None:
    print(f"fedactors: {visible(message)}", file=sys.stderr)


def _fault_of_file(error: OSError) -> str:
    """Return which file the system could not read or write, and why."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _of_the_user(error: Exception, otherwise: str) -> int:
    """Say what code of the user raised, else what to say `otherwise`; return the exit code. Raises what is nobody's."""
    from fedactors.own_code.user_errors import told

    text = told(error) or otherwise
    if not text:
        raise error
    _say(text)
    return 1


def _too_little_for_a_library(error: Exception) -> str:
    """Return what a library lacks that cannot be loaded: memory or descriptors; empty if it is something else."""
    for sign, lack in _LACKS.items():
        if isinstance(error, ImportError) and sign in str(error):
            return f"{lack}: {str(error).strip().splitlines()[-1]} (accepted: a higher limit, see `ulimit -a`)"
    return ""


def console() -> None:
    """Run the command line and leave the process."""
    standard_streams.prepare()
    bits.choose()  # before numpy is imported
    stopping.listen()
    code = main()
    if code == stopping.INTERRUPTED:  # nothing is left to do, and interrupted libraries crash in their own exits
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code)


class _ArgumentParser(argparse.ArgumentParser):
    """Errors as ours: one message, with the closest word that exists. Names of options are not abbreviated."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> Any:
        """Print the message and leave with exit code 2."""
        if choice := _CHOICE.fullmatch(message):
            where, _, found, choices = choice.groups()
            accepted = [one.strip(" '") for one in choices.split(",")]
            said = f'no command "{found}"' if where == "COMMAND" else f'argument {where}: found "{found}"'
            message = said + suggestion(found, accepted)
        elif message.startswith("unrecognized arguments:") and not message.partition(":")[2].strip():
            message = 'found an empty argument, "" (accepted: none besides those that --help lists)'
        _say(message)
        raise SystemExit(2)


_Command = tuple[Callable[[argparse.Namespace], int], str, Callable[[argparse.ArgumentParser], None]]
_COMMANDS: dict[str, _Command] = {
    "run": (run.run, "run a scenario", run.extend_run),
    "resume": (run.resume, "go on with a run that was stopped, with the same bits", run.extend_resume),
    "branch": (run.branch, "go on from a round of a recorded run with something changed", run.extend_branch),
    "diff": (folder.diff, "say where two runs part, and how", folder.extend_diff),
    "replay": (check.replay, "run the clock alone: who takes part, and how far they get", check.extend_replay),
    "check": (check.check, "say what a scenario will do, or what is wrong with it", check.extend_check),
    "verify": (check.verify, "run on different fleets and compare digests", check.extend_verify),
    "watch": (follow.run, "follow a run in the terminal", follow.extend),
    "timeline": (follow.timeline, "write a run's timelines for Perfetto", follow.extend_timeline),
    "audit": (folder.audit, "compute the records of a run again from its folder alone", folder.extend_audit),
    "export": (folder.export, "write the trained model of a run under torch's names", folder.extend_export),
    "report": (folder.report, "draw run folders as one HTML page", folder.extend_report),
    "compare": (study.run_compare, "run variants with several seeds and compare them in pairs", study.extend_compare),
    "sweep": (study.run_sweep, "run the grid or list of a scenario's sweep and draw heat maps", study.extend_sweep),
    "scenarios": (scenarios.run, "list the scenarios that come with fedactors, or write one to edit", scenarios.extend),
    "new": (new.run, "write a plugin and a scenario that runs it, to begin from", new.extend),
    "reproduce": (reproduction.run, "run an experiment of a paper and say which claims hold", reproduction.extend),
    "scale": (scale.run, "time a grid of actors and clients", scale.extend),
    "data": (data.run, "look at the data of a scenario: who holds what", data.extend),
    "traces": (traces.run, "look at recordings, convert, sample and make them", traces.extend),
    "schema": (
        check.schema,
        "print the JSON schema of scenarios, or of a command's --json",
        check.extend_schema,
    ),
    "completion": (
        completion.run,
        "print a script that completes commands in a shell",
        lambda command: completion.extend(command, parser),
    ),
}
_FIRST = """\
usage: fedactors COMMAND

Simulate federated learning on devices that are slow, busy and often gone.

  fedactors scenarios          list the scenarios that come with fedactors
  fedactors check quickstart   say what a scenario will do
  fedactors run quickstart     run a scenario; the page of the run is runs/…/report.html
  fedactors new algorithm x    write an algorithm of your own, and a scenario that runs it
  fedactors --help             list all commands"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with every command and its options."""
    parser = _ArgumentParser(
        prog="fedactors", description="Simulate federated learning; participation emerges from timing."
    )
    parser.add_argument("--version", action="store_true", help="print the versions of fedactors and what it runs on")
    parser.set_defaults(command=_first_help)
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, (function, text, extend) in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(command=function)
        extend(command)
    return parser


def _first_help(options: argparse.Namespace) -> int:
    """Print where to begin, in place of a command that was not given; 0."""
    print(_FIRST)
    return 0


def versions() -> str:
    """Return the versions of fedactors, Python, torch and ray, a line each; none of them is imported."""
    found = {"fedactors": VERSION, "python": platform.python_version()}
    for name in ("torch", "ray"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return "\n".join(f"{name} {version}" for name, version in found.items())


if __name__ == "__main__":
    console()
