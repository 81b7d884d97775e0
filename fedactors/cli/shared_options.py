"""Options that several commands share, declared once, and how figures are printed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from fedactors.errors import ScenarioError, visible

VERSIONS: dict[str, int] = {}  # of what commands print with --json, where it is no longer 1
SCENARIO = "scenario file (YAML), or the name of one that comes with fedactors: see `fedactors scenarios`"

_WINDOWS = {"last-tenth": None, "last-round": 1, "best-round": 0}  # of --metric: rounds that are averaged over


def overrides(command: argparse.ArgumentParser, text: str) -> None:
    """Declare `--set`, which `text` explains."""
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=text)


def as_json(command: argparse.ArgumentParser) -> None:
    """Declare `--json`."""
    command.add_argument("--json", action="store_true", help="print figures as JSON")


def address(command: argparse.ArgumentParser) -> None:
    """Declare a Ray cluster to join."""
    command.add_argument("--address", metavar="ADDRESS", help="join this Ray cluster instead of starting one")


def scenario(command: argparse.ArgumentParser) -> None:
    """Declare a scenario, overrides, and figures as JSON."""
    command.add_argument("scenario", metavar="SCENARIO", help=SCENARIO)
    overrides(command, "override: server.deadline=2min")
    as_json(command)


def out(command: argparse.ArgumentParser) -> None:
    """Declare a scenario and a run folder."""
    scenario(command)
    command.add_argument("--out", metavar="DIR", help="run folder")


def traces(command: argparse.ArgumentParser) -> None:
    """Declare recordings that the devices follow one after the other."""
    command.add_argument(
        "--traces",
        nargs="+",
        default=[],
        metavar="FILE",
        help="recordings of availability, each in turn: files or quoted patterns, also below FEDACTORS_TRACES",
    )


def machines(command: argparse.ArgumentParser) -> None:
    """Declare where to compute, on a Ray cluster if wanted."""
    where(command)
    address(command)


def where(command: argparse.ArgumentParser, default: str | None = "ray") -> None:
    """Declare where to compute on this machine."""
    command.add_argument("--fleet", choices=["ray", "local"], default=default, help="where to compute")
    command.add_argument("--actors", type=positive, metavar="N", help="client hosts (default: one per core)")


def averaging(command: argparse.ArgumentParser) -> None:
    """Declare over which rounds the measures of a model are averaged."""
    command.add_argument(
        "--metric",
        choices=list(_WINDOWS),
        help="of accuracy, loss and the like: the mean over the last tenth of the rounds (default), the last round, or"
        " the round that is best by the samples for validation",
    )
    command.add_argument("--window", type=int, metavar="N", help="the mean over the last N rounds instead")


def window_of(options: argparse.Namespace) -> int | None:
    """Return over how many rounds to average; None for a tenth of them. Raises ScenarioError if both are given."""
    if options.window is not None and not 1 <= options.window <= 1_000_000:
        raise ScenarioError(f"--window {options.window} (accepted: a whole number from 1 to 1,000,000)")
    if options.metric and options.window:
        raise ScenarioError("--metric and --window say the same (accepted: one of the two)")
    return options.window or _WINDOWS[options.metric or "last-tenth"]


def seconds(text: str) -> float:
    """Return the seconds of a duration such as 1min30s. Raises ArgumentTypeError."""
    from fedactors.scenario.units import duration

    try:
        return duration(text) / 10**9
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def help_of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print the help of a parser, in place of a command that was not given; 0."""
    parser.print_help()
    return 0


def show(options: argparse.Namespace, figures: dict[str, Any], form: str, command: str = "") -> None:
    """Print figures as JSON if that is wanted, else as the text that `form` of `report.terminal_text` gives.

    They are those of `command`, by default one that has the name of the form.
    """
    if options.json:
        print(as_text(command or form, figures))
        return
    from fedactors.report import terminal_text

    print(visible(getattr(terminal_text, form)(figures)))


def as_text(command: str, figures: Mapping[str, Any]) -> str:
    """Return what a command prints with `--json`: figures after the version of their schema, see `outputs`."""
    return json.dumps({"schema": version_of(command), **figures}, indent=2)


def version_of(command: str) -> str:
    """Return what stands under "schema" in what a command prints: `resume` and `branch` print what `run` does."""
    said = "run" if command in ("resume", "branch") else command
    return f"fedactors/{said}/{VERSIONS.get(said, 1)}"


def positive(text: str) -> int:
    """Return a whole number from 1 to 4096. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= 4096:
        raise argparse.ArgumentTypeError(f'found "{text}" (accepted: a whole number from 1 to 4096)')
    return int(text)
