"""`fedactors data`: look at the data of a scenario before anything is trained."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from fedactors.cli import fetch_command, planned_files, shared_options
from fedactors.errors import UsageError


def extend(command: argparse.ArgumentParser) -> None:
    """Add the actions to the command's parser."""
    command.set_defaults(action=partial(shared_options.help_of, command))
    actions = command.add_subparsers(metavar="COMMAND")
    text = "say who holds what: clients by labels, and sizes"
    describe = actions.add_parser("describe", help=text, description=text)
    describe.set_defaults(action=_describe)
    shared_options.scenario(describe)
    describe.add_argument("--clients", type=_count, default=40, metavar="N", help="clients shown (default: 40)")
    describe.add_argument("--out", metavar="FILE", help="write a chart: .html, or .svg")
    text = "fetch public data sets"
    fetch_command.extend(actions.add_parser("fetch", help=text, description=text), "data")


def run(options: argparse.Namespace) -> int:
    """Do what was asked for and return the exit code. Raises UsageError for what the user can mend."""
    result: int = options.action(options)
    return result


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f'found "{text}" (accepted: a whole number from 1 to 100,000)')
    return int(text)


def _describe(options: argparse.Namespace) -> int:
    out = None if options.out is None else Path(options.out)
    if out is not None and out.suffix not in (".html", ".svg"):
        raise UsageError(f"--out {options.out}: accepted: a file that ends in .html or .svg")
    if out is not None:
        planned_files.refuse_unwritable("--out", out)
    from fedactors.scenario import Scenario

    scenario = Scenario.load(options.scenario, options.set)
    from fedactors.simulation.inspect.client_holdings import holdings

    figures = holdings(scenario, options.clients)
    if out is not None:
        _write(figures, out)
    if options.json:
        print(shared_options.as_text("data describe", figures))
    else:
        _show(figures)
    return 0


def _write(figures: dict[str, Any], out: Path) -> None:
    from fedactors.report.client_data import holdings_chart

    (holdings_chart.write if out.suffix == ".html" else holdings_chart.write_svg)(figures, out)


def _show(figures: dict[str, Any]) -> None:
    from rich.console import Console

    from fedactors.report.client_data.holdings_text import picture

    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 160)
    console.print(picture(figures))
