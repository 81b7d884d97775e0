"""The command line: parse, call the API, print. Exit codes: 0 done, 1 a fault, 2 bad input, 130 interrupted."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from fedactors.cli import branch_commands, data_commands, follow_commands, scale_command, shared_options, trace_commands
from fedactors.cli import reproduce_command as reproduction
from fedactors.cli import study_commands as study
from fedactors.errors import FedactorsError, RunFolderError, UsageError, suggestion
from fedactors.scenario import Scenario

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    options = parser().parse_args(arguments)
    try:
        result: int = options.command(options)
    except UsageError as error:
        print(f"fedactors: {error}", file=sys.stderr)
        return 2
    except FedactorsError as error:
        print(f"fedactors: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fedactors: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except MemoryError:
        print("fedactors: out of memory", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone; there is nobody to tell
        return 1
    except OSError as error:  # a disk that is full, a file that is gone: what could be written stands
        where = f"{error.filename}: " if error.filename else ""
        print(f"fedactors: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    return result


_asked_to_stop = threading.Event()


def _as_interrupt(number: int, frame: object) -> None:
    """End as Ctrl-C does. Raised inside a destructor the exception is lost, so a run also looks at the event."""
    _asked_to_stop.set()
    raise KeyboardInterrupt


def console() -> None:
    """Run the command line and leave the process."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _as_interrupt)
    code = main()
    if code == _INTERRUPTED:  # nothing is left to do, and libraries that were interrupted crash in their own exits
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code)


class _ArgumentParser(argparse.ArgumentParser):
    """Errors as ours: one message, with the closest word that exists."""

    def error(self, message: str) -> Any:
        """Print the message and leave with exit code 2."""
        if message.startswith("argument COMMAND: invalid choice: "):
            found, _, choices = message.partition("invalid choice: ")[2].partition(" (choose from ")
            accepted = [choice.strip(" '") for choice in choices.rstrip(")").split(",")]
            message = f'no command "{found[1:-1]}"{suggestion(found[1:-1], accepted)}'
        print(f"fedactors: {message}", file=sys.stderr)
        raise SystemExit(2)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with every command and its options."""
    parser = _ArgumentParser(
        prog="fedactors", description="Simulate federated learning; participation emerges from timing."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (function, terminal_text, extend) in _COMMANDS.items():
        command = commands.add_parser(name, help=terminal_text, description=terminal_text)
        command.set_defaults(command=function)
        extend(command)
    return parser


def _run(options: argparse.Namespace) -> int:
    scenario = Scenario.load(options.scenario, options.set)
    from fedactors.simulation.record.run_folder import new_path
    from fedactors.simulation.runner import run

    out = options.out or (new_path(scenario.name) if options.tensorboard else None)
    return _play(options, Path(out or scenario.name), scenario, lambda where: run(scenario, out, **where))


def _resume(options: argparse.Namespace) -> int:
    from fedactors.simulation.runner import resume

    path, previous = Path(options.run), options.previous
    scenario = Scenario.load(path / "scenario.yaml") if options.mlflow else None
    return _play(options, path, scenario, lambda where: resume(path, options.set, previous=previous, **where))


def _branch(options: argparse.Namespace) -> int:
    from fedactors.simulation.resume.branch import branch

    run, path = Path(options.run), Path(options.out or options.run)
    scenario = Scenario.load(run / "scenario.yaml") if options.mlflow else None
    return _play(options, path, scenario, lambda where: branch(run, options.at, options.set, options.out, **where))


def _branching(command: argparse.ArgumentParser) -> None:
    branch_commands.extend(command)
    shared_options.machines(command)
    follow_commands.extend_trackers(command)


def _play(
    options: argparse.Namespace, folder: Path, scenario: Scenario | None, start: Callable[[dict[str, Any]], Any]
) -> int:
    """Run what `start` begins in `folder`, given fleet and progress, and print its summary."""
    from fedactors.simulation.progress import chosen

    where = {"fleet": options.fleet, "actors": options.actors, "address": options.address}
    shown = follow_commands.tracked(chosen(_asked_to_stop.is_set), options, folder, scenario)
    with redirect_stdout(sys.stderr):  # Ray speaks on stdout, which is for our figures
        result = start({**where, "progress": shown})
    _print(options, {**result.summary, "folder": str(result.folder)}, "summary")
    return 0


def _replay_options(command: argparse.ArgumentParser) -> None:
    shared_options.out(command)
    command.add_argument("--feedback", metavar="RUN", help="run folder with the losses that clients are selected by")


def _replay(options: argparse.Namespace) -> int:
    from fedactors.simulation.record.run_folder import new_path
    from fedactors.simulation.replay import replay

    scenario = Scenario.load(options.scenario, options.set)
    out = options.out or new_path(f"{scenario.name}-replay")
    result = replay(scenario, out, feedback=options.feedback)
    _print(options, {**result.summary, "folder": str(result.folder)}, "replay")
    return 0


def _check(options: argparse.Namespace) -> int:
    from fedactors.simulation.check import check

    scenario = Scenario.load(options.scenario, options.set)
    fleet = None if options.quick else options.fleet
    _print(options, check(scenario, fleet, options.actors), "check")
    return 0


def _check_options(command: argparse.ArgumentParser) -> None:
    shared_options.scenario(command)
    command.add_argument("--quick", action="store_true", help="no forecast of time and memory, which takes seconds")
    shared_options.where(command)


def _verify(options: argparse.Namespace) -> int:
    scenario = Scenario.load(options.scenario, options.set)
    from fedactors.simulation.verify import verify

    with redirect_stdout(sys.stderr):
        found = verify(
            scenario,
            address=options.address,
            tell=lambda terminal_text: print(terminal_text, file=sys.stderr, flush=True),
        )
    _print(options, found, "verify")
    return 0 if found["equal"] else 1


def _audit(options: argparse.Namespace) -> int:
    from fedactors.simulation.inspect.audit import audit

    found = audit(options.run)
    _print(options, found, "audit")
    return 0 if found["sound"] else 1


def _audit_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="RUN", help="run folder")
    shared_options.as_json(command)


def _report(options: argparse.Namespace) -> int:
    from fedactors.report import html

    try:
        if len(options.runs) == 1 and options.out is None:
            print(html.write(options.runs[0]))
        else:
            print(html.write_many(options.runs, options.out or "comparison.html"))
    except ValueError as error:  # the drawing library's: numbers that give no picture
        raise RunFolderError(f"{', '.join(options.runs)}: cannot be drawn: {error}") from error
    return 0


def _report_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("runs", nargs="+", metavar="RUN", help="run folder; several are compared")
    command.add_argument("--out", metavar="FILE", help="HTML file (default: RUN/report.html, or comparison.html)")


def _schema(options: argparse.Namespace) -> int:
    print(json.dumps(Scenario.model_json_schema(), indent=2))
    return 0


def _print(options: argparse.Namespace, figures: dict[str, Any], form: str) -> None:
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    from fedactors.report import terminal_text

    print(getattr(terminal_text, form)(figures))


_Command = tuple[Callable[[argparse.Namespace], int], str, Callable[[argparse.ArgumentParser], None]]
_COMMANDS: dict[str, _Command] = {
    "run": (_run, "run a scenario", shared_options.fleet),
    "resume": (_resume, "go on with a run that was stopped, with the same bits", shared_options.resumption),
    "branch": (_branch, "go on from a round of a recorded run with something changed", _branching),
    "diff": (branch_commands.diff, "say where two runs part, and how", branch_commands.extend_diff),
    "replay": (_replay, "run the clock alone: who takes part, and how far they get", _replay_options),
    "check": (_check, "say what a scenario will do, or what is wrong with it", _check_options),
    "verify": (_verify, "run on different fleets and compare digests", shared_options.verify),
    "watch": (follow_commands.run, "follow a run in the terminal", follow_commands.extend),
    "timeline": (follow_commands.timeline, "write a run's timelines for Perfetto", follow_commands.extend_timeline),
    "audit": (_audit, "work the books of a run out again from its folder alone", _audit_options),
    "report": (_report, "draw run folders as one HTML page", _report_options),
    "compare": (study.run_compare, "run variants with several seeds and compare them in pairs", study.extend_compare),
    "sweep": (study.run_sweep, "run the grid or list of a scenario's sweep and draw heat maps", study.extend_sweep),
    "reproduce": (reproduction.run, "run an experiment of a paper and say which claims hold", reproduction.extend),
    "scale": (scale_command.run, "time a grid of actors and clients", scale_command.extend),
    "data": (data_commands.run, "look at the data of a scenario: who holds what", data_commands.extend),
    "traces": (trace_commands.run, "look at recordings, convert, sample and make them", trace_commands.extend),
    "schema": (_schema, "print the JSON schema of scenario files", lambda command: None),
}

if __name__ == "__main__":
    console()
