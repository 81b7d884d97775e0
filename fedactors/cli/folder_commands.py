"""`fedactors report`, `audit`, `diff` and `export`: commands that read run folders."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path

from fedactors.cli import shared_options
from fedactors.errors import RunFolderError, ScenarioError


def extend_report(command: argparse.ArgumentParser) -> None:
    """Declare the options of `report`."""
    command.add_argument("runs", nargs="+", metavar="RUN", help="run folder; several are compared")
    command.add_argument("--out", metavar="FILE", help="HTML file (default: RUN/report.html, or comparison.html)")
    shared_options.averaging(command)


def report(options: argparse.Namespace) -> int:
    """Write the page of a run, or of several, and print its path. Raises RunFolderError if one cannot be drawn."""
    from fedactors.report import html

    window = shared_options.window_of(options)
    alone = len(options.runs) == 1
    if alone and (options.window or options.metric):
        given = "--window" if options.window else "--metric"
        raise ScenarioError(f"{given}: the page of one run shows all of its rounds (accepted: with two runs or more)")
    try:
        if alone:
            print(html.write(options.runs[0], options.out))
        else:
            print(html.write_many(options.runs, options.out or "comparison.html", window))
    except ValueError as error:  # of the drawing library, for numbers that give no picture
        raise RunFolderError(f"{', '.join(options.runs)}: cannot be drawn: {error}") from error
    return 0


def extend_audit(command: argparse.ArgumentParser) -> None:
    """Declare the options of `audit`."""
    command.add_argument("run", metavar="RUN", help="run folder")
    command.add_argument("--run-code", action="store_true", help="execute the Python files of the user in the folder")
    shared_options.as_json(command)


def audit(options: argparse.Namespace) -> int:
    """Compute the records of a run again from its folder; 0 if they agree, else 1."""
    from fedactors.own_code.user_code import copies_allowed
    from fedactors.simulation.inspect.audit import audit

    with copies_allowed() if options.run_code else nullcontext():
        found = audit(options.run)
    shared_options.show(options, found, "audit")
    return 0 if found["sound"] else 1


def extend_diff(command: argparse.ArgumentParser) -> None:
    """Declare the options of `diff`."""
    command.add_argument("runs", nargs=2, metavar="RUN", help="run folder")
    shared_options.as_json(command)


def diff(options: argparse.Namespace) -> int:
    """Print where two runs begin to differ. Raises RunFolderError if one cannot be read."""
    from fedactors.simulation.inspect.difference import diff, text

    found = diff(*options.runs)
    print(shared_options.as_text("diff", found) if options.json else text(found))
    return 0


def extend_export(command: argparse.ArgumentParser) -> None:
    """Declare the options of `export`."""
    command.add_argument("run", metavar="RUN", help="run folder")
    command.add_argument("--out", required=True, type=Path, metavar="FILE", help=".safetensors, or .pt of torch.save")
    command.add_argument("--best", action="store_true", help="the model of the best round, where server.stop keeps it")
    command.add_argument("--client", type=int, metavar="N", help="the model of client N, where clients have their own")
    command.add_argument("--run-code", action="store_true", help="use the Python files of the user in the folder")


def export(options: argparse.Namespace) -> int:
    """Write the tensors of a run's model under torch's names, and print the file. Raises UsageError if it cannot."""
    from fedactors.own_code.user_code import copies_allowed
    from fedactors.simulation.record.trained_run import export, load_run

    with copies_allowed() if options.run_code else nullcontext():
        export(load_run(options.run), options.out, best=options.best, client=options.client)
    print(options.out)
    return 0
